"""API keys, users, sessions, and the audit log."""
