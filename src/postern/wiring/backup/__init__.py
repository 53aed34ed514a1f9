"""Everything of a gateway in one file, and putting it back."""
