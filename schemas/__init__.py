"""Models of every record that crosses a border of the system. Nothing here imports the engine or the service."""
