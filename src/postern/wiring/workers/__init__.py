"""Several gateway processes on one machine: their parent, what it tells each of them, and their metrics
together."""
