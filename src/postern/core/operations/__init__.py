"""What keeps the gateway tidy."""
