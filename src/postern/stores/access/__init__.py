"""Accounts and the audit log in the database."""
