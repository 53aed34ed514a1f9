"""What a change must touch in a second place, and would forget without a word. Each message says where to go."""

import ast
import re
from collections.abc import Callable, Iterator
from inspect import isfunction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from prometheus_client.metrics import MetricWrapperBase
from screenshots import PAGES as PICTURED
from sqlalchemy import Table

from postern import presets
from postern.core.access.accounts import ApiKey, Session, User
from postern.core.access.audit import AuditEntry
from postern.core.history.invocation import HistoryFilter
from postern.core.history.marks import Bookmark, Note, SavedView
from postern.core.history.replay import Replay
from postern.core.history.sample import Sample
from postern.core.listeners import Listener, ListenerCall
from postern.core.schedules import ScheduleState
from postern.core.signatures import handshake
from postern.core.signatures.scheme import FIELDS
from postern.core.watch.alarms import Incident
from postern.core.watch.channels import AddedChannel
from postern.observe import metrics
from postern.settings import ENGINES, Settings
from postern.stores.calls import recorder
from postern.stores.calls.recorder import delivery_of
from postern.stores.history import filtering
from postern.stores.history.reading import invocation_of
from postern.stores.sql import tables
from postern.stores.sql.tables import deliveries, invocations
from postern.surfaces.cli import filters
from postern.surfaces.console import words
from postern.surfaces.console.routes import VIEWS
from postern.surfaces.console.views.history.asked import TOKENS
from postern.surfaces.console.views.webhooks import authentication
from postern.usecases.history.filters import FilterRequest
from postern.usecases.webhooks import listing as webhooks_listing
from postern.wiring.engines import make_engine
from surfaces.console.test_pages import PAGES as CHECKED

ROOT = Path(__file__).resolve().parent.parent
CONSOLE = ROOT / "src" / "postern" / "surfaces" / "console"
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
def test_an_engine_that_can_be_set_is_made_and_described(name: str, tmp_path: Path) -> None:
    settings = Settings({"POSTERN_ENGINE": name, "POSTERN_DATA_DIR": str(tmp_path), **NEEDED.get(name, {})})
    made = make_engine(settings)
    assert (made is None) == (name == "none"), f"wiring/engines.py makes nothing of POSTERN_ENGINE={name}"
    page = DESCRIBED.get(name, f"engines/{name}.md")
    assert (ROOT / "docs" / page).exists(), f"docs/{page} is to say how {name} is used"


def test_what_the_form_of_a_scheme_asks_is_read_from_it() -> None:
    asked = set(re.findall(r"\(\'scheme\.(\w+)\'", TEMPLATES["webhook/scheme.html"]))
    assert asked == set(authentication._IN_THE_FORM) <= set(FIELDS)


def _pattern(path: str) -> re.Pattern[str]:
    several = re.sub(r"\\{\w+:path\\}", ".+", re.escape(path))
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", several) + "$")


PARTS = {
    "/webhooks/rows": "a folder's rows, in the list of webhooks",
    "/webhooks/choices": "what is below a field that chooses a webhook",
    "/webhooks/{webhook}/settings/values": "a part of the settings",
    "/webhooks/{webhook}/settings/key": "a part of the settings",
    "/webhooks/{webhook}/settings/rows": "a part of the settings",
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


READ: list[tuple[Table, Any, set[str]]] = [
    (tables.samples, Sample, set()),
    (tables.call_notes, Note, {"author", "invocation_id"}),
    (tables.bookmarks, Bookmark, {"author", "invocation_id"}),
    (tables.saved_views, SavedView, set()),
    (tables.replays, Replay, {"next_at"}),
    (tables.api_keys, ApiKey, {"digest"}),
    (tables.users, User, set()),
    (tables.sessions, Session, {"digest"}),
    (tables.audit, AuditEntry, set()),
    (tables.listeners, Listener, set()),
    (tables.handed, ListenerCall, set()),
    (tables.schedules, ScheduleState, {"fingerprint"}),
    (tables.incidents, Incident, set()),
    (tables.channels, AddedChannel, set()),
]
"""Tables whose rows are read by the names of their columns, and the columns that are used in queries alone."""


@pytest.mark.parametrize(("table", "kind", "elsewhere"), READ, ids=lambda one: getattr(one, "name", ""))
def test_a_column_has_a_field_and_a_float_is_a_time(table: Table, kind: Any, elsewhere: set[str]) -> None:
    hints = get_type_hints(kind)
    assert table.c.keys() - hints.keys() == elsewhere, f"{kind.__name__} does not read them"
    floats = {name for name, hint in hints.items() if name in table.c and hint in (float, float | None)}
    others = {one for one in floats if not re.fullmatch(r"(\w+_)?(at|since|until)|anchor", one)}
    assert not others, "stores/sql/moments.py reads and writes each float as a time, in milliseconds"


WRITTEN_LATER = {
    "invocations": set(),
    "deliveries": {
        *("lease_until", "started_at", "runs", "log", "released_at", "ended_at", "ask_at"),
        *("error", "answer_code", "at_work", "superseded_by"),
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
    asked = set(re.findall(r"criteria\.(\w+)", Path(filtering.__file__).read_text("utf-8")))
    assert fields <= asked, f"stores/history/filtering.py asks nothing of {fields - asked}"
    typed = {"webhook": "webhook_id", "marked": "bookmarked"}
    parts = {typed.get(one, one) for one in TOKENS.values()}
    assert parts == fields, f"TOKENS in console/views/history/asked.py has no word for {fields - parts}"


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
