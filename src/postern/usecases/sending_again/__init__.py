"""Asking a sender to send again what it could not deliver."""
