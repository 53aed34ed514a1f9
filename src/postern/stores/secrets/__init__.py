"""Secrets at rest, and the keys they are encrypted with."""
