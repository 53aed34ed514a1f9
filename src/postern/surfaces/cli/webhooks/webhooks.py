"""`postern webhooks`, all but the commands of `many.py` and `samples.py`."""

from typing import Any, get_args

import click
import msgspec

from postern.core.documents import Document, Patch
from postern.core.signatures.credential import Placement
from postern.core.webhooks.listing import Sort
from postern.core.webhooks.settings import Method, secret_places
from postern.surfaces.cli.develop.senders import complete_sender
from postern.surfaces.cli.files import read_secret
from postern.surfaces.cli.filters import which_webhooks
from postern.surfaces.cli.gateway.api import Declined, api, camel
from postern.surfaces.cli.options import Choice, Given, Group, limit_option
from postern.surfaces.cli.run import (
    FAILED,
    NOT_FOUND,
    confirm,
    counted,
    end,
    for_programs,
    note,
    out,
    plain,
    report,
    show_page,
)
from postern.surfaces.cli.run import show as show_found
from postern.usecases.deliveries.views import Dropped, Hold, Released
from postern.usecases.runtime.site import out_of_reach
from postern.usecases.webhooks.views import (
    PLACED,
    Bin,
    ScheduleRun,
    Webhook,
    Webhooks,
    WithoutAuthentication,
    WithSignature,
    WithToken,
)

SECRETS = {"token": ("token", "secondToken"), "hmac": ("secret", "secondSecret")}
"""The API's names of the main and the second secret, by method."""

commands = Group("webhooks", help="Create, look at and change webhooks.")

settings_argument = click.argument(
    "settings",
    nargs=-1,
    metavar="[SETTING=VALUE]...",
    help="Settings as in the API, like fieldMapping.fieldOne=order.number or synchronousResponse.enabled=true. A secret among "
    "them is env:NAME, file:PATH or -.",
)


def assignments(pairs: tuple[str, ...]) -> Patch:
    """Turns ``a.b=value`` into nested objects. A value that reads as JSON is JSON, and else text. A secret is read from
    where its value says."""
    result: Patch = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            end(f"{pair!r}: write setting=value")
        try:
            value: Any = msgspec.json.decode(text)
        except msgspec.DecodeError:
            value = text
        place = result
        *parents, last = name.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                end(f"{pair!r}: {parent} was given as a whole before; write all of it at once, or none")
        place[last] = value
    if not isinstance(result.get("authentication", {}), dict):
        end("authentication: name what of it to set, like authentication.placement=bearer")
    places = secret_places()
    for name, inside in result.items():
        if isinstance(inside, dict):
            secrets = [key for key in inside if camel(key) in places.get(camel(name), ())]
            inside |= {key: _secret(f"{name}.{key}", inside[key]) for key in secrets}
    return result


def _secret(place: str, typed: Any) -> Any:
    if typed is None or isinstance(typed, list) or typed == {"generate": True}:  # a list has names alone
        return typed
    if isinstance(typed, dict):
        return {name: _secret(f"{place}.{name}", value) for name, value in typed.items()}
    return read_secret(str(typed), place)


@commands.command("create")
@click.argument("name", help="What you call it.")
@settings_argument
@click.option(
    "--auth", type=Choice(get_args(Method)), default="token", help=f"{', '.join(get_args(Method))}."
)
@click.option(
    "--placement",
    type=Choice(get_args(Placement)),
    default="header",
    help=f"Where the token travels: {', '.join(get_args(Placement))}.",
)
@click.option(
    "--provider", shell_complete=complete_sender, help="For hmac: shopify, stripe, … generic or custom."
)
@click.option(
    "--secret", help="The token or signing secret: env:NAME, file:PATH or -. Left out: one is generated."
)
@click.option("--second-secret", help="The second valid secret, likewise.")
def create(
    *,
    name: str,
    settings: tuple[str, ...],
    auth: str,
    placement: str,
    provider: str | None,
    secret: str | None,
    second_secret: str | None,
) -> None:
    """Create a webhook and print its URL.

    Examples:

      postern webhooks create "Order look-up" fieldMapping.fieldOne=orderNumber
      synchronousResponse.enabled=true

      STRIPE=whsec_… postern webhooks create Payments --auth hmac --provider stripe --secret env:STRIPE
    """
    given = assignments(settings)
    whole = given.pop("authentication", {})
    auth = whole.get("method", auth)
    authentication: Document = {"method": auth}
    if auth in SECRETS:
        main, second = SECRETS[auth]
        how = {"placement": placement} if auth == "token" else {"provider": provider} if provider else {}
        authentication |= {**how, main: read_secret(secret) if secret else {"generate": True}}
        if second_secret:
            authentication[second] = read_secret(second_secret)
    authentication |= whole
    made = api.post(Webhook, "webhooks", body={"name": name, "authentication": authentication, **given})
    for_programs(made)
    out.print(f"Created {out.styled(plain(made.name), 'bold')}  {made.id}")
    out.print(f"URL: {made.url}")
    address = made.url.rpartition("/webhook/")[0]
    for warning in filter(None, [*made.warnings, out_of_reach(address)]):
        out.print(f"Note: {warning}", "yellow")
    if needs_secret(made):
        out.print(f"Next: postern webhooks set {made.id} --secret file:PATH")
    elif {"generate": True} in authentication.values():
        what = "token" if auth == "token" else "signing secret"
        out.print(
            f"A {what} was generated. The console reveals it to administrators: {address}/webhooks/{made.id}/settings#secrets. "
            f"Or set one of your own: postern webhooks set {made.id} --secret file:PATH"
        )


@commands.command("list")
@which_webhooks
@click.option(
    "--sort",
    type=Choice(get_args(Sort)),
    default="created",
    help="created (newest first), failing, name, folder, last_call or last_day (most calls in 24 hours).",
)
@click.option("--reverse", is_flag=True, help="The other way round.")
@limit_option(50)
def listing(*, wanted: Given, sort: str, reverse: bool, limit: int, cursor: str | None) -> None:
    """List the webhooks, newest first. Every filter that is given must hold.

    Examples:

      postern webhooks list --state failing

      postern webhooks list --tag europe --folder Shops --sort last_call
    """
    page = api.get(
        Webhooks, "webhooks", limit=limit, cursor=cursor, sort=sort, reverse=reverse or None, **wanted
    )
    show_page(
        page,
        "No webhook matches." if wanted or cursor else "No webhook yet: postern webhooks create NAME",
        {
            "id": "id",
            "name": "name",
            "folder": "folder",
            "tags": lambda webhook: ", ".join(webhook.tags),
            "authentication": _authentication,
            "calls": "callCount",
            "state": _state,
            "url": "url",
        },
    )
    for unreadable in page.unreadable or ():
        note(unreadable.detail)


@commands.command("show")
def show(webhook: str) -> None:
    """Show a webhook with its settings and state, without its secrets."""
    show_found(api.get(Webhook, "webhooks", webhook))


@commands.command("set")
@settings_argument
@click.option(
    "--secret", help="A new main token or signing secret: env:NAME, file:PATH or -. Takes effect at once."
)
@click.option("--second-secret", help="The second valid secret, likewise; `none` removes it.")
def change(*, webhook: str, settings: tuple[str, ...], secret: str | None, second_secret: str | None) -> None:
    """Change settings. Settings that you do not name stay.

    Examples:

      postern webhooks set wh_… fieldMapping.fieldTwo=customer.email rateLimit.callsPerSecond=20

      postern webhooks set wh_… --second-secret file:new-secret
    """
    patch = assignments(settings)
    if not patch and not secret and not second_secret:
        end("Say what to change: SETTING=VALUE, --secret or --second-secret.")
    if secret or second_secret:
        method = api.get(Webhook, "webhooks", webhook).authentication.method
        main_name, second_name = SECRETS.get(method, SECRETS["hmac"])
        authentication = patch.setdefault("authentication", {})
        if secret:
            authentication[main_name] = read_secret(secret)
        if second_secret:
            authentication[second_name] = None if second_secret == "none" else read_secret(second_secret)
    changed = api.patch(Webhook, "webhooks", webhook, body=patch)
    report(changed, f"Changed {changed.name}; it is now version {changed.version}.")


@commands.command("enable")
def enable(webhook: str) -> None:
    """Accept calls again."""
    _switch(webhook, True)


@commands.command("disable")
def disable(webhook: str) -> None:
    """Reject every call with 403 until enabled again."""
    _switch(webhook, False)


@commands.command("promote")
@click.option(
    "--now", is_flag=True, help="Even if calls may still carry the old secret: they are rejected then."
)
def promote(webhook: str, now: bool) -> None:
    """Make the second valid secret the main one, and clear the second."""
    done = api.post(Webhook, "webhooks", webhook, "promote", now=now)
    report(done, f"The second secret of {done.name} is now the main one.")


@commands.command("adopt-secret")
@click.argument(
    "invocation",
    required=False,
    help="The call that announced it. Needed where callers announced different ones.",
)
def adopt(webhook: str, invocation: str | None) -> None:
    """Take the secret that a sender announced in its set-up handshake (Notion, Asana) as the main one.

    Anybody can announce one: do it only if you were setting up the sender just then. `postern webhooks show` says which
    were announced, when and from where.
    """
    done = api.post(Webhook, "webhooks", webhook, "adopt-secret", invocation_id=invocation)
    report(done, f"The announced secret is now the main one of {done.name}.")


@commands.command("delete")
def delete(webhook: str, yes: bool) -> None:
    """Delete a webhook: its URL answers 404. For seven days `postern webhooks restore` has it back; its history stays
    until retention takes it."""
    if not (yes or out.as_json):
        confirm(f"{_name(webhook)}: its URL will answer 404. Delete it?", yes)
    api.delete("webhooks", webhook)
    report({"deleted": webhook}, f"Deleted. Until seven days from now: postern webhooks restore {webhook}")


@commands.command("bin")
@limit_option(200)
def in_the_bin(limit: int, cursor: str | None) -> None:
    """List the webhooks that were deleted in the last seven days."""
    show_page(
        api.get(Bin, "bin", limit=limit, cursor=cursor),
        "The bin is empty.",
        {"id": "id", "name": "name", "calls": "callCount", "deleted": "deletedAt", "gone for good": "goneAt"},
    )


@commands.command("restore")
def restore(webhook: str) -> None:
    """Restore a deleted webhook from the bin with its URL, settings and secrets."""
    done = api.post(Webhook, "bin", webhook, "restore")
    report(done, f"{done.name} is there again: {done.url}")


@commands.command("delete-for-good")
def delete_for_good(webhook: str, yes: bool) -> None:
    """Delete the settings and secrets of a webhook that is in the bin, before its seven days are over."""
    confirm("Its settings and secrets cannot be had back. Delete them?", yes)
    api.delete("bin", webhook)
    report({"deleted": webhook}, "Deleted for good.")


def _name(webhook: str) -> str:
    """Returns the name of a webhook, or its id if it cannot be read: it can be deleted all the same."""
    try:
        answer = api.ask("GET", ("webhooks", webhook), {}, declines=True)
    except Declined as declined:
        if declined.status == 404:
            end(str(declined), NOT_FOUND, declined.code)
        return webhook
    return plain(msgspec.json.decode(answer)["name"])


def _switch(webhook: str, enabled: bool) -> None:
    done = api.post(Webhook, "webhooks", webhook, "enable" if enabled else "disable")
    report(done, f"{done.name} is {'enabled' if enabled else 'disabled'}.")


def needs_secret(webhook: Webhook) -> bool:
    return isinstance(webhook.authentication, WithSignature) and webhook.authentication.secret_awaited


def _authentication(webhook: Webhook) -> str:
    match webhook.authentication:
        case WithToken() as how:
            return f"Static token, {PLACED[how.placement]}"
        case WithSignature() as how:
            return f"Signed by {how.provider}"
        case WithoutAuthentication():
            return "None"


def _state(webhook: Webhook) -> str:
    if webhook.enabled and needs_secret(webhook):
        return "needs its secret"
    return "held" if webhook.held else "enabled" if webhook.enabled else "disabled"


@commands.command("hold")
def hold(webhook: str) -> None:
    """Accept and record calls, and start nothing until `release`: for maintenance without loss."""
    report(api.post(Hold, "webhooks", webhook, "hold"), "On hold: calls are recorded, and wait.")


@commands.command("release")
def release(webhook: str) -> None:
    """End the hold and start the waiting deliveries, the oldest first."""
    done = api.post(Released, "webhooks", webhook, "release")
    report(done, f"Released. Due now: {counted(done.released, 'delivery', 'deliveries')}.")


@commands.command("drop")
def drop(webhook: str, yes: bool) -> None:
    """Give up the deliveries that wait behind a hold. The calls stay in the history and can be replayed. The
    hold goes on."""
    confirm("The calls that wait now will not be started. Drop them?", yes)
    done = api.post(Dropped, "webhooks", webhook, "drop")
    report(done, f"Dropped {counted(done.dropped, 'delivery', 'deliveries')}.")


@commands.command("run")
def run(webhook: str) -> None:
    """Fetch a schedule's source once, now, and treat its answer like a call."""
    done = api.post(ScheduleRun, "webhooks", webhook, "schedule", "run")
    started = ", ".join(done.invocation_ids) or "nothing started"
    report(
        done, f"{done.result} in {done.duration_ms} ms{': ' + done.reason if done.reason else ''} ({started})"
    )
    if done.result == "failed":
        raise click.exceptions.Exit(FAILED)


@commands.command("resume")
def resume(webhook: str) -> None:
    """Resume a schedule that has paused itself."""
    done = api.post(Webhook, "webhooks", webhook, "schedule", "resume")
    report(done, f"It goes on at {done.schedule_state and done.schedule_state.next_run_at}.")
