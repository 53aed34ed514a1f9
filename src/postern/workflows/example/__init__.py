"""The workflow that `postern serve --example` writes into the user's folder."""

from pathlib import Path

EXAMPLE = Path(__file__).with_name("order_lookup.py")
