"""`postern history …`, `postern replays …`, and everything exported."""
