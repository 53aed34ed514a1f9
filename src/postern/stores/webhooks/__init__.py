"""Webhooks: their settings, kept whole and versioned, with their secrets; and the bin."""
