"""What is answered about calls."""
