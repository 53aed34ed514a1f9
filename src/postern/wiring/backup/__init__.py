"""Backup of a whole gateway in one file, and restore."""
