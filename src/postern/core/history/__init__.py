"""What is kept of a call."""
