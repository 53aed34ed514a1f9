"""Answers about calls."""
