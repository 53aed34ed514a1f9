"""What a change must touch in a second place, and would forget without a word. Each message says where to go."""

import ast
import re
from collections.abc import Callable, Iterator
from inspect import isfunction
from pathlib import Path
from pkgutil import resolve_name, walk_packages
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from prometheus_client.metrics import MetricWrapperBase
from screenshots import PAGES as PICTURED
from sqlalchemy import Table

import postern
from core.signatures.test_credential import SENT
from postern import presets
from postern.core.access.accounts import Level
from postern.core.alarms import ALARMS
from postern.core.deliveries.delivery import State as DeliveryState
from postern.core.history.invocation import HistoryFilter, RecordedOutcome, Status
from postern.core.history.volume import CountedOutcome
from postern.core.problems import PROBLEMS
from postern.core.signatures import handshake
from postern.core.signatures.credential import Placement
from postern.core.signatures.encoding import Encoding, SecretEncoding
from postern.core.signatures.freshness import TimestampFormat
from postern.core.signatures.keys import Algorithm
from postern.core.signatures.scheme import FIELDS
from postern.core.webhooks.listing import Action, Sort, State
from postern.core.webhooks.making import Wrong
from postern.core.webhooks.settings import Authentication, Method
from postern.observe import metrics
from postern.settings import ENGINES, EngineName, Settings
from postern.stores.calls import recorder
from postern.stores.calls.recorder import delivery_of
from postern.stores.history import filtering
from postern.stores.history.reading import invocation_of
from postern.stores.sql.tables import deliveries, invocations
from postern.surfaces.cli import filters
from postern.surfaces.cli.develop import send
from postern.surfaces.cli.webhooks import many as many_of_commands
from postern.surfaces.console import words
from postern.surfaces.console.routes import VIEWS
from postern.surfaces.console.views.operations import settings
from postern.surfaces.console.views.operations.settings import ENGINE_SETTINGS as PREFIXES
from postern.surfaces.console.views.webhooks import authentication, listing, many, test_call
from postern.surfaces.console.words import CODE_WORDS
from postern.surfaces.console.words import ENGINES as TITLES
from postern.usecases.deliveries.views import ReplayOutcomes as OfReplay
from postern.usecases.history.code import Language
from postern.usecases.history.filters import FilterRequest
from postern.usecases.history.views.calls import Outcomes
from postern.usecases.webhooks import listing as webhooks_listing
from postern.usecases.webhooks.requests import SECRETS
from postern.usecases.webhooks.views import Authentication as Shown
from postern.wiring.engines import make_engine
from surfaces.console.test_pages import PAGES as CHECKED

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "src" / "postern" / "core"
CONSOLE = ROOT / "src" / "postern" / "surfaces" / "console"
CHARTS = (CONSOLE / "static" / "js" / "charts.js").read_text("utf-8")
TEMPLATES = {
    str(file.relative_to(CONSOLE / "templates")): file.read_text("utf-8")
    for file in sorted((CONSOLE / "templates").rglob("*.html"))
}


NEEDED = {
    "http": {"POSTERN_HTTP_URL": "http://127.0.0.1:9/"},
    "dbos": {"POSTERN_DBOS_DATABASE_URL": "postgresql://dbos@127.0.0.1:9/dbos"},
    "restate": {"POSTERN_RESTATE_URL": "http://127.0.0.1:9"},
    "shopify-flow": {
        "POSTERN_SHOPIFY_SHOP": "example.myshopify.com",
        "POSTERN_SHOPIFY_ACCESS_TOKEN": "token",
    },
}
"""The settings without which an engine says that it cannot work."""
DESCRIBED = {"embedded": "workflows.md", "none": "reference/settings.md"}
"""What is described elsewhere than in `docs/engines/`."""


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_can_be_set_is_made_and_has_a_title(name: str, tmp_path: Path) -> None:
    settings = Settings({"POSTERN_ENGINE": name, "POSTERN_DATA_DIR": str(tmp_path), **NEEDED.get(name, {})})
    made = make_engine(settings)
    assert (made is None) == (name == "none"), f"wiring/engines.py makes nothing of POSTERN_ENGINE={name}"
    assert name in TITLES, f"ENGINES in console/words.py has no title for {name}"
    assert name in PREFIXES, f"ENGINE_SETTINGS in console/views/operations/settings.py has no {name}"
    page = DESCRIBED.get(name, f"engines/{name}.md")
    assert (ROOT / "docs" / page).exists(), f"docs/{page} is to say how {name} is used"


def typed(template: str, about: str) -> set[str]:
    """The options in the tag of a template that names this: ``('name', 'Title')``, or ``'name': 'Title'``."""
    tags = [tag for tag in re.findall(r"\{[{%].+?[%}]\}", TEMPLATES[template]) if about in tag]
    return {one for tag in tags for one in re.findall(r"(?:\(|, |\{)'(\w+)'(?:, '|: ')", tag)}


CHOICES: list[tuple[Any, Any, str]] = [
    (Placement, SENT, "SENT in tests/core/signatures/test_credential.py"),
    (Method, SECRETS, "SECRETS in usecases/webhooks/requests.py"),
    (Method, [one.__struct_config__.tag for one in get_args(Authentication)], "Authentication in core"),
    (Method, [one.__struct_config__.tag for one in get_args(Shown)], "Authentication in usecases/webhooks/views.py"),
    (DeliveryState, OfReplay.__struct_fields__, "Outcomes in usecases/deliveries/views.py"),
    (CountedOutcome, Outcomes.__struct_fields__, "Outcomes in usecases/history/views/calls.py"),
    (CountedOutcome, re.findall('"(.+?)"', re.findall("OUTCOMES = (.+);", CHARTS)[0]), "OUTCOMES in charts.js"),
    (CountedOutcome, {*get_args(RecordedOutcome)} - {"edited"}, "RecordedOutcome in core/history/invocation.py"),
    (CountedOutcome, {*filtering._NOT_STARTED, "accepted"}, "_NOT_STARTED in stores/history/filtering.py"),
    (Level, [name for name, _ in settings.LEVELS], "LEVELS in console/views/operations/settings.py"),
    (Level, typed("frame.html", "actor.level"), "templates/frame.html"),
    (Wrong, [name for name, _ in test_call.WRONGS if name], "WRONGS in console/views/webhooks/test_call.py"),
    (Wrong, send.WRONGS, "WRONGS in cli/develop/send.py"),
    (Action, listing.ACTIONS, "ACTIONS in console/views/webhooks/listing.py"),
    (Action, many.DONE, "DONE in console/views/webhooks/many.py"),
    (Action, many_of_commands.DONE, "DONE in cli/webhooks/many.py"),
    (State, [name for name in listing.STATES if name], "STATES in console/views/webhooks/listing.py"),
    (Sort, {*listing.ORDERS, "folder"}, "ORDERS in console/views/webhooks/listing.py"),
    (Language, typed("call/menu.html", "for language, title"), "templates/call/menu.html"),
    (Encoding, typed("webhook/scheme.html", "'scheme.encoding"), "templates/webhook/scheme.html"),
    (SecretEncoding, typed("webhook/scheme.html", "'scheme.secretEncoding"), "templates/webhook/scheme.html"),
    (TimestampFormat, typed("webhook/scheme.html", "'scheme.timestampFormat"), "templates/webhook/scheme.html"),
    (Algorithm, typed("webhook/scheme.html", "'scheme.algorithm"), "templates/webhook/scheme.html"),
]  # fmt: skip
"""A choice, and a place that says something of each of its values. What a ``match`` says is for mypy to compare."""


@pytest.mark.parametrize(
    ("choice", "known", "where"), CHOICES, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_choice_is_known_wherever_something_is_said_of_it(choice: Any, known: Any, where: str) -> None:
    missing, unknown = set(get_args(choice)) - set(known), set(known) - set(get_args(choice))
    assert not missing, f"{where} lacks {missing}"
    assert not unknown, f"{where} has {unknown}, which can not be chosen"


SAYS_NOTHING_OF_SOME = {
    "postern.core.signatures.keys.DIGESTS": "a token has its digest in its own header",
    "postern.settings.NEEDED": "some engines need no setting",
    "postern.surfaces.console.bodies.ENDINGS": "other bodies are files without an ending",
    "postern.surfaces.console.views.webhooks.listing.ORDERS": "the order by folder is offered elsewhere",
}


def tables() -> Iterator[tuple[str, Any, Any]]:
    """Each ``dict[SomeChoice, …]`` of a module: its name, the choice, and the dictionary."""
    for one in walk_packages(postern.__path__, "postern."):
        if ".migrations" in one.name or one.name.endswith("__main__"):
            continue
        module = resolve_name(one.name)
        for name in getattr(module, "__annotations__", {}):
            hint = get_type_hints(module)[name]
            if get_origin(hint) is dict and get_origin(get_args(hint)[0]) is Literal:
                yield f"{one.name}.{name}", get_args(hint)[0], getattr(module, name)


def test_a_table_says_something_of_each_value_of_its_choice() -> None:
    found = list(tables())
    wrong = {name for name, choice, table in found if set(table) != set(get_args(choice))}
    assert len(found) > 15 and wrong == set(SAYS_NOTHING_OF_SOME), wrong ^ set(SAYS_NOTHING_OF_SOME)


def test_the_page_about_alarms_tells_of_each() -> None:
    page = (ROOT / "docs" / "how-to" / "alarms.md").read_text("utf-8")
    told = {kind for kind in ALARMS if f"| {kind.replace('_', ' ')} |" in page}
    assert told == set(ALARMS), "docs/how-to/alarms.md"


def test_what_the_form_of_a_scheme_asks_is_read_from_it() -> None:
    asked = set(re.findall(r"\(\'scheme\.(\w+)\'", TEMPLATES["webhook/scheme.html"]))
    assert asked == set(authentication._IN_THE_FORM) <= set(FIELDS)


@pytest.mark.parametrize("method", get_args(Method))
def test_a_method_has_its_fields_in_the_form(method: str) -> None:
    form = TEMPLATES["webhook/who_may_call.html"]
    assert f'data-when="method:{method}"' in form, "templates/webhook/who_may_call.html"


def test_options_that_are_typed_in_a_template_belong_to_no_choice() -> None:
    """A list of options in a template would not follow a choice that grows."""
    choices = [set(get_args(choice)) for choice in (Status, Placement, Method, CountedOutcome, EngineName)]
    for name, text in TEMPLATES.items():
        for tag in re.findall(r"\{[{%].+?[%}]\}", text, re.DOTALL):
            typed = set(re.findall(r"'([\w-]+)'", tag))
            assert not any(choice <= typed for choice in choices), f"{name} types the options of {tag}"


NEVER_RECORDED = {"webhook_not_found": "no webhook, no history"}
"""Codes that `core/` says of something that never becomes an invocation."""


def test_a_reason_for_rejecting_a_call_has_words_in_the_console() -> None:
    worded = {
        node.value
        for file in CORE.rglob("*.py")
        if file.name not in {"problems.py", "answer.py"}
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in PROBLEMS
    }
    missing = worded - CODE_WORDS.keys() - NEVER_RECORDED.keys()
    assert not missing, f"CODE_WORDS in console/words.py says nothing of {sorted(missing)}"


def _pattern(path: str) -> re.Pattern[str]:
    several = re.sub(r"\\{\w+:path\\}", ".+", re.escape(path))
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", several) + "$")


PARTS = {
    "/webhooks/rows": "a folder's rows, in the list of webhooks",
    "/webhooks/choices": "what is below a field that chooses a webhook",
    "/webhooks/{webhook}/settings/values": "a part of the settings",
    "/webhooks/{webhook}/settings/key": "a part of the settings",
    "/webhooks/{webhook}/schedule/next": "a part of the schedule",
    "/webhooks/{webhook}/starts": "a part of the overview",
    "/live/stream": "a stream",
    "/live/count": "what a tab in the background asks for",
    "/calls/export": "a file",
    "/calls/{invocation}/workflow": "a file",
    "/webhooks/{webhook}/steps": "a part of the page after creating",
    "/calls/count": "a part of the history's page",
    "/calls/{invocation}/sent": "a part of a call's page",
    "/calls/{invocation}/runs": "a part of a call's page",
    "/calls/{invocation}/body": "a file",
    "/calls/{invocation}/call.json": "a file",
    "/calls/{invocation}/fixture": "a file",
    "/calls/{invocation}/code/{language}": "a text to copy",
    "/replays/{replay}": "shown with a replay that is under way; its own test looks at it",
    "/workflows/beginning": "made from a recorded event; its own test looks at it",
}
"""What is asked for with GET and is no page of its own."""


@pytest.mark.parametrize("path", [path for method, path, _ in VIEWS if method == "GET" and path not in PARTS])
def test_a_page_is_checked_and_has_its_picture(path: str) -> None:
    pattern = _pattern(path)
    checked = [one.partition("?")[0] for one in CHECKED]
    pictured = [one.partition("?")[0] for _, one, _ in PICTURED]
    assert any(map(pattern.match, checked)), f"PAGES in tests/surfaces/console/test_pages.py lacks {path}"
    assert any(map(pattern.match, pictured)), f"PAGES in scripts/screenshots.py lacks {path}"


def test_every_picture_that_is_taken_is_there() -> None:
    missing = [name for name, _, _ in PICTURED if not (ROOT / "docs" / "console" / f"{name}.png").exists()]
    assert not missing, f"`make screenshots` takes {missing}"


READERS = {"text", "get", "on", "lines", "_whole"}


def _fields_read(view: Path) -> set[str]:
    """The names that a view reads of a form: ``form.text("name")``, ``_whole(form, "name")``."""
    found = set()
    for node in ast.walk(ast.parse(view.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in READERS:
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            first = next((one.value for one in node.args if isinstance(one, ast.Constant)), None)
            if names & {"form", "sent"} and isinstance(first, str):
                found.add(first)
    return found


def test_what_a_form_is_read_for_has_a_field() -> None:
    """Without one, saving the page would put the setting back to its default."""
    read = set().union(*map(_fields_read, (CONSOLE / "views").rglob("*.py")))
    templates = "".join(TEMPLATES.values())
    missing = {name for name in read if f"'{name}'" not in templates and f'name="{name}"' not in templates}
    assert len(read) > 40 and not missing, f"no template has a field called {sorted(missing)}"


def test_a_filter_of_the_templates_is_used() -> None:
    written = "".join([*TEMPLATES.values(), *(one.read_text("utf-8") for one in CONSOLE.rglob("*.py"))])
    used = {one for pair in re.findall(r"(?:\|\s*|words\.)(\w+)|(?<!def )\b(\w+)\(", written) for one in pair}
    own = {name for name, one in vars(words).items() if isfunction(one) and one.__module__ == words.__name__}
    assert own and not own - used, f"console/words.py: nobody needs {own - used}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_imports_what_it_uses(name: str) -> None:
    imports = re.compile(r'\{% from "[^"]+" import (.+?)(?: with context)? %\}')
    rest = imports.sub("", TEMPLATES[name])
    imported = {
        one.split(" as ")[-1] for names in imports.findall(TEMPLATES[name]) for one in names.split(", ")
    }
    unused = {one for one in imported if not re.search(rf"\b{one}\(", rest)}
    assert not unused, f"{name} does not use {sorted(unused)}"


class FullRow:
    """A row of a table in which every column has a value of its own."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._fields = tuple(table.c.keys())

    def __getattr__(self, name: str) -> object:
        column = self._table.c[name]
        if name in ("fields", "log", "response_headers", "headers", "trace"):
            return b"{}" if name == "fields" else b"[]"
        own = 1000 * (1 + list(self._table.c).index(column))
        return {int: own, str: name, bytes: name.encode(), bool: True}[column.type.python_type]

    def __iter__(self) -> Iterator[object]:
        return (getattr(self, column.name) for column in self._table.c)


@pytest.mark.parametrize(
    ("table", "read", "elsewhere"),
    [
        (invocations, invocation_of, set()),
        (deliveries, delivery_of, {"response_status", "response_headers", "response_body"}),
    ],
    ids=["invocations", "deliveries"],
)
def test_a_column_is_read_or_named_here(
    table: Table, read: Callable[[Any], object], elsewhere: set[str]
) -> None:
    row = FullRow(table)
    where = f"{read.__module__}.{read.__name__}"
    try:
        made = read(row)
    except TypeError as error:  # "unexpected keyword argument"
        pytest.fail(f"{where} does not know what to do with all columns of {table.name}: {error}")
    missing = {column.name for column in table.c if not hasattr(made, column.name)} - elsewhere
    assert not missing, f"{where} does not read {sorted(missing)} of {table.name}"
    plain = [one.name for one in table.c if isinstance(getattr(made, one.name, None), str | int | float)]
    of_another = [
        name
        for name in plain
        if getattr(made, name)
        not in (given := getattr(row, name), given / 1000 if isinstance(given, int) else given)
    ]
    assert len(plain) > 8 and not of_another, f"{where} takes another column for {of_another} of {table.name}"


WRITTEN_LATER = {
    "invocations": set(),
    "deliveries": {
        *("lease_until", "started_at", "runs", "log", "released_at", "ended_at", "ask_at"),
        *("error", "answer_code"),
        *("response_status", "response_headers", "response_body", "responded_at"),
    },
}
"""What is not known yet when a call is recorded."""


@pytest.mark.parametrize(
    ("table", "inserted"),
    [(invocations, recorder._INVOCATION_COLUMNS), (deliveries, recorder._DELIVERY_COLUMNS)],
    ids=["invocations", "deliveries"],
)
def test_a_column_is_recorded_or_named_here(table: Table, inserted: tuple[str, ...]) -> None:
    missing = set(table.c.keys()) - set(inserted) - WRITTEN_LATER[table.name]
    assert not missing, f"stores/calls/recorder.py inserts no {sorted(missing)} into {table.name}"
    wrong = [
        column.name
        for column in table.c
        if column.name not in inserted and not column.nullable and column.server_default is None
    ]
    assert not wrong, (
        f"{wrong} of {table.name} may not be empty, and stores/calls/recorder.py leaves them out"
    )


@pytest.mark.parametrize("kind", [kind for kind in get_args(handshake.HandshakeKind) if kind != "none"])
def test_a_kind_of_handshake_is_answered(kind: handshake.HandshakeKind) -> None:
    made = handshake.Handshake(kind, verify_token=b"token", sign=lambda _: b"")
    answered = made._before is not None or made._after is not None
    assert answered, f"core/signatures/handshake.py has no answer for {kind}"


def test_a_field_of_the_history_s_filter_is_asked_for_everywhere() -> None:
    fields = set(HistoryFilter.__struct_fields__)
    assert set(FilterRequest.model_fields) == fields, "FilterRequest in usecases/history/filters.py"
    assert set(filters.CALLS) == fields, "CALLS in surfaces/cli/filters.py"
    asked = set(re.findall(r"wanted\.(\w+)", Path(filtering.__file__).read_text("utf-8")))
    assert fields <= asked, f"stores/history/filtering.py asks nothing of {fields - asked}"


def test_a_field_of_the_webhooks_filter_is_an_option() -> None:
    fields = set(webhooks_listing.WebhookFilterRequest.model_fields)
    assert set(filters.WEBHOOKS) == fields, "WEBHOOKS in surfaces/cli/filters.py"


def test_a_metric_is_served() -> None:
    made = {
        name: one
        for name, one in {**vars(metrics), **vars(metrics.Numbers)}.items()
        if isinstance(one, MetricWrapperBase)
    }
    served = {one.name for one in metrics.REGISTRY.collect()}
    missing = {name for name, one in made.items() if next(iter(one.collect())).name not in served}
    assert len(made) > 5 and not missing, (
        f"observe/metrics.py makes {sorted(missing)} without registry=REGISTRY"
    )


SPELLED = re.compile(r"\b(\d+) (?:built-in )?(?:senders|presets|signature providers)\b")


def test_the_number_of_senders_is_right_wherever_it_is_typed() -> None:
    senders = len(presets.names()) - 1  # the generic scheme is no sender
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.html")]
    typed = {
        f"{file.relative_to(ROOT)}: {found}"
        for file in files
        for found in SPELLED.findall(file.read_text("utf-8"))
        if int(found) != senders
    }
    assert not typed, f"there are {senders} senders now"
