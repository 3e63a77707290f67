"""Taps to copy: each file needs nothing of this project, only what it imports."""
