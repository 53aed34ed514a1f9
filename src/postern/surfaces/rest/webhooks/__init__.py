"""Creating, changing, reading webhooks, and the bin."""
