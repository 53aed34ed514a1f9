"""Proving who sent a call: schemes as data, one verifier, and what explains a failure."""
