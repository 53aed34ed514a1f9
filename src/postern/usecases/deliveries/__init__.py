"""Starting workflows: now, later, again."""
