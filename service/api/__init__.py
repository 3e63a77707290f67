"""The API role: an index over the facts and the HTTP calls that ask it."""
