"""What a running process is made of."""
