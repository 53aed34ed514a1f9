"""Measurements. Each runs by one command and compares with something else on the same machine: trust the
ratios."""
