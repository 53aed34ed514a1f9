"""What was recorded: read, counted, brought to its end, replayed, deleted."""
