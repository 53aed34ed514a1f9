"""Write docs/reference from the code: what can be set, refused, verified, typed and asked for is written once,
where it is made.

A page is a function from nothing to its text; PAGES names them all, and tests/test_docs.py fails while a page
is stale.
"""

import importlib
import inspect
import json
import pkgutil
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
import msgspec

from postern import presets, usecases
from postern.core.problems import PROBLEMS
from postern.core.signatures.algorithms import ALGORITHM_KINDS
from postern.core.signatures.scheme import SignatureScheme, json_schema
from postern.core.signatures.signed_content import TOKEN_WORDS
from postern.core.webhooks import settings as webhook_settings
from postern.core.webhooks.bounds import Bounds
from postern.observe.metrics import REGISTRY
from postern.settings import SETTINGS
from postern.surfaces.cli.main import program
from postern.surfaces.cli.run import EXIT_CODES
from postern.surfaces.rest.framework.document import description
from postern.surfaces.rest.table import operations
from postern.usecases.answers import as_plain
from postern.usecases.webhooks.file import schema as file_schema

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
COMMON = SignatureScheme().to_document()
MADE = "<!-- Made from the code by `make reference`; change it there. -->"


def settings_page() -> str:
    rows = [
        [
            f"`{one.variable}`",
            f"`{one.default}`" if one.default else "",
            "yes" if one.secret else "",
            one.help,
        ]
        for one in SETTINGS
    ]
    return page(
        "Settings",
        "All settings come from the environment. A secret may also come from a file: the same name with `_FILE` at its end. "
        "`postern settings` shows the values in force.",
        table(["Variable", "Default", "Secret", "Meaning"], rows),
    )


def webhook_settings_page() -> str:
    return page(
        "Settings of a webhook",
        "The API, MCP, `postern webhooks set` and the YAML of `postern export` use these names. Secrets are set beside "
        "them, under `authentication`, and never shown.",
        *(
            f"## {title}\n\n{docstring(shape)}\n\n{table(['Setting', 'Default', 'Meaning and bounds'], settings_of(shape, path))}"
            for title, shape, path in WEBHOOK_SETTINGS
        ),
    )


WEBHOOK_SETTINGS: list[tuple[str, type[webhook_settings.Setting], str]] = [
    ("Webhook", webhook_settings.WebhookSettings, ""),
    ("Authentication by token", webhook_settings.TokenAuthentication, "authentication."),
    ("Authentication by signature", webhook_settings.SignatureAuthentication, "authentication."),
    ("Field mapping", webhook_settings.FieldMapping, "fieldMapping."),
    ("Synchronous response", webhook_settings.SynchronousResponse, "synchronousResponse."),
    ("Answer to accepted calls", webhook_settings.AcceptedAnswer, "acceptedAnswer."),
    ("Conditions", webhook_settings.ConditionRow, "conditions."),
    ("Target", webhook_settings.TargetSetting, "target."),
    ("Duplicate protection", webhook_settings.DuplicateProtection, "duplicateProtection."),
    ("CORS", webhook_settings.CorsSetting, "cors."),
    ("Rate limit", webhook_settings.RateLimit, "rateLimit."),
    ("Turns", webhook_settings.TurnsSetting, "turns."),
    ("Schedule", webhook_settings.ScheduleSetting, "schedule."),
    ("Asking the sender again", webhook_settings.SendAgainSetting, "sendAgain."),
    ("Alarms", webhook_settings.AlarmSettings, "alarms."),
    ("Rhythm", webhook_settings.RhythmSetting, "alarms.rhythm."),
]


def default_of(value: Any) -> str:
    if value is None or isinstance(value, webhook_settings.Setting):
        return ""
    return f"`{json.dumps(value)}`"


def docstring(shape: type[Any]) -> str:
    return " ".join((shape.__doc__ or "").split())


def settings_of(shape: type[webhook_settings.Setting], path: str) -> list[list[str]]:
    hints = get_type_hints(shape, include_extras=True)
    rows = []
    for field in msgspec.structs.fields(shape):
        fallback = "required" if field.required else default_of(webhook_settings.default_of(field))
        name = path + field.encode_name
        sections = [
            (title, f"#{title.lower().replace(' ', '-')}")
            for title, _, of in WEBHOOK_SETTINGS
            if of == f"{name}."
        ]
        if field.name == "scheme":
            sections.append(("Its members", "custom-scheme.md"))
        meanings = [*bounds_of(hints[field.name]), *(f"[{title}]({anchor})." for title, anchor in sections)]
        rows.append([f"`{name}`", fallback, " ".join(meanings)])
    return rows


def bounds_of(kind: Any) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield f"One of {', '.join(f'`{one}`' for one in get_args(kind))}."
        return
    for said in getattr(kind, "__metadata__", ()):
        if isinstance(said, Bounds):
            if said.le is not None:
                yield (
                    f"{said.ge} to {said.le}."
                    if said.gt is None
                    else f"More than {said.gt}, up to {said.le}."
                )
            if said.max_length is not None:
                yield f"At most {said.max_length} {'characters' if kind.__origin__ is str else 'entries'}."
        else:
            yield said.description
    for part in get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind):
        yield from bounds_of(part)


def problems_page() -> str:
    rows = [[f"`{one.code}`", str(one.status), one.title, one.help] for one in PROBLEMS.values()]
    return page(
        "Problems",
        "Every error, for callers of a webhook and in the management API, is an `application/problem+json` document with one of these codes.",
        table(["Code", "Status", "Title", "What to do"], rows),
    )


def senders_page() -> str:
    rows = [
        [
            f"[{preset.title}](senders/{name}.md)",
            f"`{name}`",
            ALGORITHM_KINDS[preset.scheme.algorithm].words,
            ", ".join(preset.aliases),
        ]
        for name, preset in presets.load().items()
    ]
    return page(
        "Senders",
        "The built-in senders. Each page says how to set one up, what to paste, and how it signs and sends again.",
        table(["Sender", "Provider", "Signed with", "Also"], rows),
    )


def custom_scheme_page() -> str:
    in_use: dict[str, list[tuple[str, str]]] = {}
    for preset in presets.load().values():
        for name, value in preset.scheme.to_document().items():
            if value != COMMON[name] and shown(value).strip():
                in_use.setdefault(name, []).append(
                    (shown(value), f"[{preset.title}](senders/{preset.name}.md)")
                )
    examples = {
        name: "`{}` ({})".format(*min(found, key=lambda one: len(one[0]))) for name, found in in_use.items()
    }
    members = [
        [
            f"`{name}`",
            one["description"].partition(" The tokens:")[0],
            values_of(one),
            f"`{shown(COMMON[name])}`" if COMMON[name] not in ("", []) else "",
            examples.get(name, ""),
        ]
        for name, one in json_schema()["properties"].items()
    ]
    places = [
        ["`header:Name`", "the header's value; `header:Name-*` is every header whose name begins so"],
        ["`query:name`", "the URL parameter's value"],
        ["`body:path`", "the value at that path of the body, like `body:data.items[0].id`"],
        [
            "`item:name`",
            "the part of the signature's own value with that key, like `t` in `t=1700000000,v1=5f1d…`; of a list without keys its number, like `item:1`; of a signed token the claim",
        ],
    ]
    return page(
        "Custom scheme",
        "A sender that is not built in is described by these members, under `authentication.scheme` with the provider `custom`, in the API, MCP and "
        "YAML. The console has a form of it. [Worked examples](../how-to/custom-scheme.md).",
        table(["Member", "Meaning", "Values", "Default", "Example"], members),
        "## Places\n\n" + table(["Place", "What is there"], places),
        "## Tokens of `signedContent`\n\n"
        + table(["Token", "Stands for"], [[f"`{one}`", words] for one, words in TOKEN_WORDS.items()])
        + "\n\nA brace itself is written twice.",
        "## Algorithms\n\n"
        + table(["Algorithm", "Is"], [[f"`{one}`", kind.words] for one, kind in ALGORITHM_KINDS.items()]),
    )


def values_of(member: dict[str, Any]) -> str:
    """The values that a member may have, in words."""
    if member.get("enum"):
        return ", ".join(f"`{one}`" for one in member["enum"] if one.replace("_", "").isalnum())
    if "anyOf" in member:
        return f"A list of up to {member['anyOf'][0]['maxItems']}, or one."
    match member["type"]:
        case "integer":
            return f"{member['minimum']} to {member['maximum']}."
        case "boolean":
            return "`true`, `false`"
        case _:
            return f"Up to {member['maxLength']} characters." if "maxLength" in member else "One place."


def send_again_facts(how: presets.SendAgain | None) -> list[list[str]]:
    if how is None:
        return []
    if how.kind is None:
        return [["Sent again", how.by_hand or ""]]
    words = [
        how.by_hand or "[By itself](../../how-to/send-again.md)",
        f"`account`: {how.account}.",
        how.token,
    ]
    return [["Sent again", " ".join(words)], ["From", how.source]]


def sender_page(name: str) -> str:
    preset = presets.get(name)
    paste = "Paste, a public key" if preset.has_public_key else "Paste"
    facts = [
        ["Provider", f"`{name}`"],
        ["Also", ", ".join(preset.aliases)],
        [paste, preset.secret.paste],
        ["Find it", preset.secret.where],
        ["Waits", f"{preset.sender.timeout_seconds:g} seconds" if preset.sender.timeout_seconds else ""],
        ["Retries", preset.sender.retries],
        ["Mind", preset.sender.reactions],
        ["Source", preset.sender.source],
        *send_again_facts(preset.send_again),
        ["Body", "An array is accepted, and read as its `items`." if preset.sends_arrays else ""],
        ["Test calls", ", ".join(f"`{sample.event}`" for sample in preset.samples)],
    ]
    scheme = [
        [f"`{key}`", f"`{shown(value)}`"]
        for key, value in preset.scheme.to_document().items()
        if value not in ("", [], None, False)
    ]
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(preset.setup, 1))
    return page(
        preset.title,
        steps,
        table(["", ""], [fact for fact in facts if fact[1]]),
        "How it signs, in the members of a [custom scheme](../custom-scheme.md):",
        table(["Field", ""], scheme),
    )


def metrics_page() -> str:
    """Writes the page of metrics with the names that `/metrics` shows: a counter with `_total` at its end."""
    rows = [
        [
            f"`{metric.name}{'_total' if metric.type == 'counter' else ''}`",
            metric.type,
            metric.documentation,
        ]
        for metric in sorted(REGISTRY.collect(), key=lambda metric: metric.name)
    ]
    return page(
        "Metrics",
        "The metrics at `/metrics`, for Prometheus. With `--workers N` each sample has the label `worker`: add them up.",
        table(["Metric", "Kind", "Meaning"], rows),
    )


def commands_page() -> str:
    parts = []
    for words, command in commands():
        usage = " ".join(
            [
                "postern",
                *words,
                *(
                    one.metavar or one.name.upper()
                    for one in command.params
                    if not one.opts[0].startswith("-")
                ),
            ]
        )
        rows = [
            [
                f"`{', '.join(one.opts)}`"
                if one.opts[0].startswith("-")
                else f"`{one.metavar or one.name.upper()}`",
                default(one),
                one.help or "",
            ]
            for one in command.params
        ]
        options = "\n\n" + table(["", "Default", ""], rows) if rows else ""
        parts.append(
            f"## postern {' '.join(words)}\n\n{inspect.cleandoc(command.help or '')}\n\n```\n{usage}\n```{options}"
        )
    return page(
        "Commands",
        "`--help` of each command says the same. `--profile NAME` may be anywhere in a command: it goes to the gateway of "
        "that login, and with `--profile local` to the database of this machine "
        "([how](../how-to/commands-over-the-network.md)).",
        f"Exit codes: {EXIT_CODES}.",
        *parts,
    )


def use_cases_page() -> str:
    rows = [
        [f"`{name}`", ", ".join(f"`{one}`" for one in list(parameters)[2:]), purpose]
        for name, parameters, purpose in use_cases()
    ]
    return page(
        "Use cases",
        "Everything that Postern can do. REST, MCP, command line and console are tables over these functions, so all can do the same.",
        table(["Use case", "Arguments", "What it does"], rows),
    )


PAGES: dict[str, Callable[[], str]] = {
    "webhook-settings.md": webhook_settings_page,
    "settings.md": settings_page,
    "problems.md": problems_page,
    "senders.md": senders_page,
    "custom-scheme.md": custom_scheme_page,
    "commands.md": commands_page,
    "metrics.md": metrics_page,
    "use-cases.md": use_cases_page,
    "openapi.json": lambda: as_text(description(list(operations()))),
    "webhooks.schema.json": lambda: as_text(file_schema.schema()),
    **{f"senders/{name}.md": partial(sender_page, name) for name in presets.names()},
}


def as_text(document: object) -> str:
    return json.dumps(as_plain(document), indent=1, ensure_ascii=False) + "\n"


def commands() -> Iterator[tuple[list[str], click.Command]]:
    """Each command by its words: `["webhooks", "create"]`."""

    def walk(words: list[str], command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
        if isinstance(command, click.Group):
            for name in sorted(command.commands):
                yield from walk([*words, name], command.commands[name])
        else:
            yield words, command

    return walk([], program)


def use_cases() -> Iterator[tuple[str, list[str], str]]:
    """Each function that takes a gateway and an actor: its name, its parameters, and its docstring's first
    sentence."""
    found = pkgutil.walk_packages(usecases.__path__, "postern.usecases.")
    for module in sorted((one.name for one in found), key=lambda name: name.rpartition(".")[2]):
        for name, function in inspect.getmembers(
            importlib.import_module(module), inspect.iscoroutinefunction
        ):
            parameters = list(inspect.signature(function).parameters)
            public = function.__module__ == module and not name.startswith("_")
            if public and parameters[:2] == ["gateway", "actor"]:
                doc = " ".join((inspect.getdoc(function) or "").split())
                yield f"{module.rpartition('.')[2]}.{name}", parameters, doc


def page(title: str, lead: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, lead, *parts]) + "\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def default(parameter: click.Parameter) -> str:
    if parameter.required:
        return "required"
    value = parameter.to_info_dict()["default"]
    return f"`{value}`" if value not in (None, False, ()) else ""


def shown(value: Any) -> str:
    return (
        ", ".join(value)
        if isinstance(value, list)
        else value
        if isinstance(value, str)
        else json.dumps(value)
    )


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, make in PAGES.items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(make())
