"""What a webhook is."""
