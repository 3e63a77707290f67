"""The service: the three roles, their settings, the command line and the page."""
