"""The archive: facts kept for good as Parquet segments in a store, chained by their offsets."""
