"""The table of the API's topics, which are loaded by name: whole, and right about where each is found."""

from importlib import import_module
from pkgutil import walk_packages

import pytest

from postern.surfaces import rest
from postern.surfaces.rest import inside
from postern.surfaces.rest.framework.operation import PREFIX, Rows
from postern.surfaces.rest.table import TOPICS, operations


def test_every_topic_is_in_the_table() -> None:
    found = set()
    for module in walk_packages(rest.__path__, f"{rest.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, Rows):
                found.add(f"{module.name.removeprefix('postern.surfaces.rest.')}:{name}")
    assert found == set(TOPICS)


@pytest.mark.parametrize("place", TOPICS)
def test_a_topic_says_what_its_paths_begin_with(place: str) -> None:
    module, _, name = place.partition(":")
    rows: Rows = getattr(import_module(f"postern.surfaces.rest.{module}"), name)
    assert {one.path.removeprefix(PREFIX).split("/")[1] for one in rows.operations} == TOPICS[place]


def test_a_command_finds_each_operation() -> None:
    for one in operations():
        found, _ = inside.found(one.method, one.path.removeprefix(PREFIX).replace("{", "").replace("}", ""))
        assert found is one
