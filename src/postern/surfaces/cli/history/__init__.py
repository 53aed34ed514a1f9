"""`postern history`, `replay` and `replays`."""
