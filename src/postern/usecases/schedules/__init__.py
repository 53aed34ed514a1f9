"""Webhooks that fetch by themselves."""
