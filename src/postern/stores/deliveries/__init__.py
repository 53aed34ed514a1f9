"""Deliveries: the small, moving part."""
