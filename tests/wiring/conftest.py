"""What is tried on a gateway of this process, as the use cases are."""

from support.desk import desk, settings

__all__ = ["desk", "settings"]
