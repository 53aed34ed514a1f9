"""A page on another origin than the program's: where a storefront's own scripts run."""

from collections.abc import Iterator

import pytest

from support.server import serving

PAGE = b"<!doctype html><link rel=icon href=data:,><title>Shop</title>"


@pytest.fixture
def shop() -> Iterator[str]:
    with serving(lambda _: (200, "text/html", PAGE)) as url:
        yield url
