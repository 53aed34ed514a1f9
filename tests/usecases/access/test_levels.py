"""Who may do what: each use case asks for its level before it looks at anything."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, get_args

from reference import use_cases

from postern import usecases
from postern.core.access.accounts import Actor, Level
from postern.core.problems import Refused


class Touched(Exception):
    """The gateway was looked at."""


class Closed:
    def __getattr__(self, name: str) -> object:
        raise Touched(name)


MODULES = [one.name for one in pkgutil.walk_packages(usecases.__path__, "postern.usecases.")]


def function_of(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(".")
    for one in MODULES:
        if one.rpartition(".")[2] == module:
            made = getattr(importlib.import_module(one), function, None)
            if inspect.iscoroutinefunction(made):
                return made
    raise LookupError(name)


async def level_of(name: str) -> Level | None:
    """The lowest with which it looks at anything."""
    function = function_of(name)
    others = list(inspect.signature(function).parameters.values())[2:]
    given = [Closed() for one in others if one.default is inspect.Parameter.empty]
    for level in get_args(Level):
        try:
            await function(Closed(), Actor("who", level), *given)
        except Refused as refused:
            if refused.code != "access_denied" or "level" not in refused.detail:
                return level
        except (Touched, TypeError):  # it has asked for the level, and something is not there to look at
            return level
        else:
            return level
    return None


READ = """
accounts.change_own_password as_code.export bin.listing engine.runs engine.state engine.workflows history.as_code
history.count history.failures history.listing history.preview history.request history.show idempotency.once live.follow readiness.status
readmission.standing readmission.recheck readmission.recheck_within remedies.effects live.watch replays.listing replays.show retention.last samples.new_workflow
samples.sample sending.samples signatures.explain signatures.scheme signatures.propose signatures.provider signatures.providers signatures.test trying.duplicate_key trying.conditions trying.seen volumes.chart
volumes.last_day webhooks.show listing.folders listing.listing listing.page listing.with_own_retention picking.choices
picking.meant picking.names picking.one
comparing.compared retention.kept_until retention.rule history.oldest findable.behind fixtures.fixture samples.payload_types
listeners.answer listeners.ask listeners.end listeners.enter listeners.listing samples.workflow_of_call
incidents.at_a_glance channels.listing incidents.listing incidents.rhythm incidents.show saved_views.delete saved_views.listing saved_views.rename saved_views.save
"""
# Sessions are everybody's own, and without one only an admin's to see.
ADMIN = """
accounts.change_user accounts.create_key accounts.create_user accounts.delete_key accounts.delete_user accounts.keys
accounts.revoke_session accounts.sessions accounts.user accounts.users audit.listing export.everything webhooks.reveal
settings.rotate_key retention.plan retention.prune settings.in_force
webhooks.reveal
"""


async def test_a_use_case_needs_its_level_and_write_where_it_is_not_named_here() -> None:
    read, admin = READ.split(), ADMIN.split()
    names = [name for name, _, _ in use_cases()]
    expected = {name: "read" if name in read else "admin" if name in admin else "write" for name in names}
    assert {name: await level_of(name) for name in names} == expected
