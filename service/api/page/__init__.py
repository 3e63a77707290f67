"""The page at `/`: files of this package and the chart library of an installed one; nothing from elsewhere."""
