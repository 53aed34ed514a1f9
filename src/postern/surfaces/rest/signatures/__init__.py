"""Signatures explained to their owner, and test calls as a sender would make them."""
