"""The sender in a command's arguments, and its webhooks."""

from types import ModuleType

import click
from click.shell_completion import CompletionItem

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import end
from postern.usecases.answers import Listing
from postern.usecases.signatures.views import SampleCall
from postern.usecases.webhooks.views import Webhook, Webhooks


def complete_sender(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Completes the senders that this version knows. A gateway over the network may know others."""
    return [CompletionItem(name) for name in _senders().names() if name.startswith(begun)]


def check_sender(name: str) -> None:
    known = _senders()
    if name not in known.names():
        near = " or ".join(known.nearest(name))
        meant = f"did you mean {near}? All" if near else "all"
        end(
            f"{name!r} is neither a webhook's id (wh_…) nor a sender; {meant} are listed by `postern signatures providers`"
        )


def samples_of(target: str) -> list[SampleCall]:
    """Returns the test calls of a webhook, or of a sender, which are known without a gateway."""
    if target.startswith("wh_"):
        return api.get(Listing[SampleCall], "webhooks", target, "test-calls").items
    check_sender(target)
    samples: list[SampleCall] = _senders().samples_of(target)
    return samples


def _senders() -> ModuleType:
    from postern.usecases.signatures import senders

    return senders


def webhooks_of(sender: str) -> list[Webhook]:
    return list(api.every(Webhooks, "webhooks", sender=sender))
