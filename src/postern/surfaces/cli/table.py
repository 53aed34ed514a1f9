"""Every command that asks the gateway, in the order in which `--help` shows them, by name: the list shows all of them, and
one that was typed loads no other's modules (`docs/decisions/0018-commands.md`)."""

from importlib import import_module

import typer

COMMANDS: dict[str, tuple[str, ...]] = {
    "webhooks": (
        "webhooks.webhooks:commands",
        "webhooks.deliveries",
        "webhooks.many",
        "webhooks.samples",
        "webhooks.schedules",
    ),
    "history": ("history.history:commands", "history.rechecking", "history.saving"),
    "replay": ("history.history:replay",),
    "replays": ("history.replays:commands",),
    "prune": ("operations.retention:prune",),
    "signatures": ("signatures:commands",),
    "secrets": ("signatures:secret_commands",),
    "export": ("webhooks.configuration:export",),
    "apply": ("webhooks.configuration:apply",),
    "schema": ("webhooks.schema:schema",),
    "mcp": ("operations.mcp:mcp",),
    "backup": ("operations.backup:backup",),
    "restore": ("operations.backup:restore",),
    "listen": ("develop.listen:listen",),
    "listeners": ("develop.listeners:commands",),
    "send": ("develop.send:send",),
    "login": ("gateway.login:login",),
    "logout": ("gateway.login:logout",),
    "status": ("gateway.login:status",),
    "completion": ("operations.completion:completion",),
    "keys": ("access:keys",),
    "users": ("access:users",),
    "sessions": ("access:sessions",),
    "audit": ("access:audit",),
    "workflows": ("workflows:commands",),
}
"""By its first word: module and name of the command or the group, and the modules that enter further commands in that group."""


def enter(app: typer.Typer, word: str | None) -> None:
    """All, or the one of that word."""
    for name in COMMANDS if word is None else {word} & COMMANDS.keys():
        place, *others = COMMANDS[name]
        module, _, attribute = place.partition(":")
        found = getattr(_loaded(module), attribute)
        for other in others:
            _loaded(other)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)


def _loaded(module: str) -> object:
    return import_module(f"postern.surfaces.cli.{module}")
