"""A webhook and its settings."""
