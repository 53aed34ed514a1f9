"""The gateway that a command asks, and the ways to ask it."""
