"""Who may ask, and what was changed by whom."""
