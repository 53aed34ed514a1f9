"""The history: reading, counting, ends, replays, deletion."""
