"""`postern login`, `logout` and `status`: the gateway that commands go to."""

from urllib.parse import urlsplit

import click

from postern import __version__
from postern.core.address import reach_of
from postern.surfaces.cli.files import read_or_ask
from postern.surfaces.cli.gateway import profiles
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.profiles import DEFAULT, LOCAL, Login, Profile
from postern.surfaces.cli.options import command
from postern.surfaces.cli.run import end, err, for_programs, out, plain, report
from postern.usecases.access.views import Me
from postern.usecases.operations.views import Status


@command()
@click.argument("url", metavar="URL", help="The gateway, like https://hooks.example.com.")
@click.option("--key", help="An API key of it: env:NAME, file:PATH or -. Left out: asked for.")
def login(url: str, key: str | None) -> None:
    """Send commands to a gateway over the network, with one of its API keys.

    The console makes keys, and so does `postern keys create` on the gateway's machine. The key is kept in a file that
    only you may read. With --profile NAME several gateways are known; the one of the last login is used.

    Example:

      postern login https://hooks.example.com --profile production
    """
    name = api.profile or DEFAULT
    if name == LOCAL:
        end(f"--profile {LOCAL} is the database of this machine; choose another name")
    address = profiles.address(url, "URL")
    parts = urlsplit(address)
    if parts.scheme == "http" and not reach_of(address):
        err.print("Note: over http:// anybody on the way can read the key. Is there no https:// ?")
    typed = read_or_ask(key, "--key", "API key").strip()
    given = profiles.checked_key(typed, "That is no API key: they begin with pk_")
    api.use(Login(address, given, name))
    me = api.get(Me, "me")
    known = profiles.read()
    known.profiles[name] = Profile(address, given)
    known.current = name
    profiles.write(known)
    text = f"Commands go to {address} now, as {me.name} with access level {me.level} (profile {name})."
    report({"profile": name, "url": address, "name": me.name, "level": me.level}, text)


@command()
def logout() -> None:
    """Forget a login: the current one, or that of --profile. Its API key stays valid until it is deleted."""
    known = profiles.read()
    name = api.profile or known.current
    if name not in known.profiles:
        end("Nobody is logged in." if name == LOCAL else f"There is no profile {name}.")
    del known.profiles[name]
    if known.current == name:
        known.current = LOCAL
    profiles.write(known)
    where = "the local database" if known.current == LOCAL else known.profiles[known.current].url
    report(
        {"profile": name, "current": known.current},
        f"Profile {name} is forgotten. Commands go to {where} now.",
    )


@command()
def status() -> None:
    """Show the gateway that commands go to, your name there, and its state."""
    to = api.login()
    me = api.get(Me, "me")
    gateway = api.get(Status, "status")
    # The profile is empty if the environment names the gateway.
    here = {"profile": to.profile if to else LOCAL, "url": to.url if to else None}
    for_programs({**here, "name": me.name, "level": me.level, "version": __version__, "gateway": gateway})
    is_served = api.is_served()
    where = (
        f"{to.url} ({f'profile {to.profile}' if to.profile else 'POSTERN_URL'})"
        if to
        else "the gateway that runs on this machine"
        if is_served
        else "the local database"
    )
    out.print(plain(f"Commands go to {where}, as {me.name} with access level {me.level}."))
    out.print(plain(f"It is version {gateway.version}; this command is version {__version__}."))
    out.print(plain(f"Webhooks are called at {gateway.base_url}/webhook/…"))
    for name, part in gateway.parts().items():
        if is_served or name != "engine":
            out.print(plain(f"{name}: {'ok' if part.ok else 'not ok'}, {part.detail}"))
    if not is_served:  # the command opens no engine
        out.print("engine: not seen from here; /readyz of the gateway that serves says how it is")
