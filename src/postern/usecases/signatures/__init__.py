"""Signatures explained to their owner."""
