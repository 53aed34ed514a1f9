"""Starting workflows: later, and again."""
