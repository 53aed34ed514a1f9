"""The webhooks as one document, and what the gateway was started with, over HTTP."""

from postern.core.access.accounts import Actor
from postern.core.operations.shown_setting import ShownSetting
from postern.surfaces.rest.framework.bodies import LARGEST_CONFIGURATION
from postern.surfaces.rest.framework.table import Rows
from postern.surfaces.rest.requests import ApplyRequest
from postern.usecases.answers import Listing, whole
from postern.usecases.operations import readiness, settings
from postern.usecases.operations.views import Status
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks import as_code
from postern.usecases.webhooks.views import Applied, Configuration

row = Rows("Configuration")


@row("GET", "/configuration", "Export every webhook", level="read")
async def export_configuration(gateway: Gateway, actor: Actor) -> Configuration:
    """As `postern export` writes it. Of secrets it holds references, never values."""
    return await as_code.export(gateway, actor)


@row(
    "POST", "/configuration", "Make the webhooks what a document says",
    level="write", refuses=("version_conflict", "not_found"), largest_body=LARGEST_CONFIGURATION,
)  # fmt: skip
async def apply_configuration(gateway: Gateway, actor: Actor, body: ApplyRequest) -> Applied:
    """All of it is checked before any of it is changed; what is right already is left alone. `secrets` says what
    the document's references stand for; a stored secret whose reference is not among them stays."""
    found = {(str(one.kind), one.name): one.value for one in body.secrets}
    return await as_code.apply(
        gateway,
        actor,
        body.document,
        lambda kind, name: found.get((kind, name)),
        prune=body.prune,
        dry_run=body.dry_run,
    )


@row("GET", "/status", "Show how the gateway is", level="read")
async def show_status(gateway: Gateway, actor: Actor) -> Status:
    """Its version, its public address, and whether it can do its work."""
    return await readiness.status(gateway, actor)


@row("GET", "/settings", "List the gateway's settings", level="admin")
async def list_settings(gateway: Gateway, actor: Actor) -> Listing[ShownSetting]:
    """What the process was started with. Of secrets only whether they are set."""
    return whole(await settings.in_force(gateway, actor))
