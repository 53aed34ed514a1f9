"""The fixtures that every test may ask for; what they are is said in `beds/`."""

from beds.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]
