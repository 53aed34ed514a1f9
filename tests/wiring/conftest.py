"""Fixtures of a gateway in this process, as for the use cases."""

from support.desk import desk, settings

__all__ = ["desk", "settings"]
