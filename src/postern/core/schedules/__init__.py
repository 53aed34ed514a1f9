"""When a scheduled webhook runs, and what its source answered."""
