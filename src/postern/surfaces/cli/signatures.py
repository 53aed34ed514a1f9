"""`postern signatures` and `postern secrets`."""

import json
import sys
from base64 import b64encode
from collections.abc import Callable

import click
import msgspec

from postern.core.documents import Document
from postern.core.signatures.diagnosis.variants import Variation
from postern.surfaces.cli.files import read_file, read_secret
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Group
from postern.surfaces.cli.run import (
    FAILED,
    counted,
    end,
    for_programs,
    out,
    plain,
    report,
    show_page,
    time_of,
)
from postern.usecases.answers import Listing
from postern.usecases.signatures.views import CustomScheme, Explanation, Provider, SignatureResult

LONGEST_SHOWN = 500

commands = Group("signatures", help="Signature schemes, and why a signature does not match.")
_SENDER: dict[str, str | Callable[[Provider], str]] = {
    "provider": "name",
    "sender": "title",
    "paste": lambda about: about.secret.paste,
}
secret_commands = Group("secrets", help="The encryption of stored secrets.")


@commands.command("providers")
def providers() -> None:
    """List the senders that Postern knows: what to paste and where to find it."""
    show_page(api.get(Listing[Provider], "providers"), "", _SENDER)


@commands.command("scheme")
def scheme() -> None:
    """Show the members of a custom scheme, for a sender that is not built in."""
    custom = api.get(CustomScheme, "custom-scheme")
    for_programs(custom)
    for name, member in custom.members.items():
        out.print(f"{name}: {member['description']}")


@commands.command("test")
@click.option("--provider", help="Check as this sender signs.")
@click.option("--secret", help="Its secret: env:NAME, file:PATH or -.")
@click.option("--webhook", help="Or: check with this webhook's stored settings and secrets (wh_…).")
@click.option("--invocation", help="The recorded call to check (inv_…).")
@click.option("--url", default="", help="Or a call of your own: the URL that was signed.")
@click.option("--header", multiple=True, help="Its headers, like 'Stripe-Signature: t=…,v1=…'.")
@click.option("--body", help="Its body: a file, or - for standard input.")
@click.option(
    "--at",
    help="When it arrived: 2026-11-21T09:00:00Z, seconds since 1970, or 45s, 30m, 1h, 2d ago. Default: now, or when it was recorded.",
)
def test(
    *,
    provider: str | None,
    secret: str | None,
    webhook: str | None,
    invocation: str | None,
    url: str,
    header: tuple[str, ...],
    body: str | None,
    at: str | None,
) -> None:
    """Check a signature and say why it does or does not match, and what would make it match.

    Examples:

      postern signatures test --webhook wh_… --invocation inv_…

      postern signatures test --provider github --secret env:SECRET --header 'X-Hub-Signature-256: sha256=…'
      --body payload.json
    """
    request: Document = {"at": None if at is None else time_of(at, "--at")}
    if webhook:
        request["webhookId"] = webhook
    elif provider:
        if secret is None:
            end("--secret: the provider's secret is needed")
        request["authentication"] = {"method": "hmac", "provider": provider, "secret": read_secret(secret)}
    if invocation:
        request["invocationId"] = invocation
    elif header or body:
        pairs = [
            (name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in header or [])
        ]
        request["call"] = {
            "url": url,
            "headers": pairs,
            "bodyBase64": b64encode(read_file(body) if body else b"").decode(),
        }
    result = api.post(SignatureResult, "signature-tests", body=request)
    for_programs(result)
    out.print(plain(result.explanation))
    for step in result.steps:
        out.print(f"  {'ok ' if step.ok else 'no '} {plain(step.step)}: {plain(step.detail)}")
    if result.signed_content is not None:
        signed = result.signed_content
        out.print(
            f"  signed    {plain(repr(signed[:LONGEST_SHOWN]))}{' …' if len(signed) > LONGEST_SHOWN else ''}"
        )
    for signature in result.received:
        out.print(f"  received  {plain(signature)}")
    for computed in result.expected:
        out.print(f"  expected  {plain(computed.signature)} ({computed.secret} secret)")
    _show_changes(result.would_verify_if)
    if not result.verified:
        sys.exit(FAILED)


@commands.command("explain")
def explain(invocation: str) -> None:
    """Explain why a recorded call was accepted or rejected, and what would correct it, with its webhook's
    present settings."""
    answer = api.get(Document, "invocations", invocation, "explanation")
    for_programs(answer)  # where the signature is the trouble, it says more
    result = msgspec.convert(answer, Explanation)
    out.print(f"{result.code}: {plain(result.explanation)}")
    _show_changes(result.would_verify_if)
    if result.resembles:
        out.print(f"It looks like a call of {', '.join(result.resembles)}.")


@commands.command("propose")
@click.argument("description", required=False, help="What the sender is called, or what it does.")
@click.option("--invocation", help="Or a recorded call of it (inv_…).")
def propose(description: str | None, invocation: str | None) -> None:
    """Find the built-in sender that fits, best first: by a name, or by a recorded call.

    Examples:

      postern signatures propose "stripe payments"

      postern signatures propose --invocation inv_…
    """
    if (description is None) == (invocation is None):
        end("say what the sender is called, or name a call with --invocation")
    page = api.get(Listing[Provider], "proposals", description=description, invocation_id=invocation)
    otherwise = "None that is known. The generic and custom schemes may do: postern signatures providers"
    show_page(page, otherwise, _SENDER)


@secret_commands.command("rotate-key")
def rotate_key() -> None:
    """Encrypt every stored secret with the first key of POSTERN_SECRET_KEYS.

    Put the new key first and keep the old one behind it, run this, then drop the old one.
    """
    done = api.machine("secrets rotate-key").rotate_key()
    report({"reencrypted": done}, f"Encrypted with the new key now: {counted(done, 'secret')}.")


def _show_changes(changes: list[Variation]) -> None:
    for change in changes:
        out.print(f"It would verify if: {plain(change.change)}. {plain(change.explanation)}")
        if change.patch:
            out.print(f"  {plain(json.dumps(change.patch, ensure_ascii=False))}")
