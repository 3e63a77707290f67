"""The exact engine: no Kafka, no HTTP, no environment variables."""
