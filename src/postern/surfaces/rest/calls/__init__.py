"""Answering a waiting caller, and calls that were rejected and pass now."""
