"""Model Context Protocol: the same use cases, as tools that a model can use well. Over HTTP at /mcp, and over
stdio."""

from typing import Any


def load_sdk() -> Any:
    """Late, because it takes a second: most commands, and many gateways, are never asked."""
    import postern.surfaces.mcp.sdk as sdk

    return sdk
