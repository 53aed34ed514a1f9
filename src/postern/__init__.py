"""Postern: an inbound webhook gateway."""
