"""The management API: a table of paths and use cases."""
