"""Creating, changing, reading webhooks, and compiling them for calls."""
