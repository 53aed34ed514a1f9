"""Packages that are installed only on request: `pip install 'postern-gateway[postgres]'`."""

from importlib.util import find_spec

_MODULES = {"postgres": "psycopg", "temporal": "temporalio", "dbos": "dbos", "mcp": "mcp"}


def missing(extra: str, needed_by: str) -> str | None:
    """Says how to install an extra, or returns None if it is installed. ``needed_by`` names what needs it."""
    if find_spec(_MODULES[extra]) is not None:
        return None
    return (
        f"{needed_by} needs packages that are not installed: pip install 'postern-gateway[{extra}]', "
        f"in a checkout pip install '.[{extra}]'"
    )
