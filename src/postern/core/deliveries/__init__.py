"""The intent to start a workflow once, and how that went."""
