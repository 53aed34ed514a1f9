"""What `scripts/mutants.py` is made of."""
