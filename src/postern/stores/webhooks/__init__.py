"""Webhooks: their settings, kept whole and versioned, their secrets, and the bin."""
