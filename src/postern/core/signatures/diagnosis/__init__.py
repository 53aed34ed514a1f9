"""Explains to people why a signature does not match, and what would make it match. No call waits for it."""
