"""Model Context Protocol: the same use cases, as tools that a model can use well. Over HTTP at /mcp, and over
stdio."""

from typing import Any


def load_sdk() -> Any:
    """Imports late, because it takes a second, and most commands and many gateways never need it."""
    import postern.surfaces.mcp.sdk as sdk

    return sdk
