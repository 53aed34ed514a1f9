"""Rules that keep the gateway tidy."""
