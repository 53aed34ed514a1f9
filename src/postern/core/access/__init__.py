"""Access levels, accounts, and the audit log."""
