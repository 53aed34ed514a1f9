"""The table of the API's topics."""

from importlib import import_module
from pkgutil import walk_packages

from postern.surfaces import rest
from postern.surfaces.rest.framework.operation import Rows
from postern.surfaces.rest.table import TOPICS


def test_every_topic_is_in_the_table() -> None:
    modules = walk_packages(rest.__path__, f"{rest.__name__}.")
    found = {
        id(one)
        for module in modules
        for one in vars(import_module(module.name)).values()
        if isinstance(one, Rows)
    }
    assert found == {id(one) for one in TOPICS}
