"""Postern: an inbound webhook gateway."""

__version__ = "0.1.0"
