"""What is installed only when it is asked for: `pip install 'postern-gateway[postgres]'`."""

from importlib.util import find_spec

_MODULES = {"postgres": "psycopg", "temporal": "temporalio", "dbos": "dbos", "mcp": "mcp"}


def missing(extra: str, wanted: str) -> str | None:
    """What to do about an extra that is not installed, in a sentence; ``wanted`` is what cannot be had without."""
    if find_spec(_MODULES[extra]) is not None:
        return None
    return f"{wanted} needs packages that are not installed: pip install 'postern-gateway[{extra}]'"
