"""The console's words for numbers, times and outcomes. Templates have each function as a filter of its name."""

import json
import re
import time
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from postern.core.history.invocation import Status
from postern.core.history.volume import OUTCOMES as OUTCOMES
from postern.core.problems import PROBLEMS
from postern.core.schedules import hours as hours
from postern.core.signatures.credential import Placement
from postern.core.signatures.secret_form import SecretForm
from postern.core.watch.alarms import ALARMS as ALARMS
from postern.core.webhooks.conditions import Operator
from postern.core.webhooks.settings import Forward, Method
from postern.settings import EngineName
from postern.usecases.alarms.incidents import headline_of as headline_of
from postern.usecases.alarms.incidents import sentence_of as sentence_of
from postern.usecases.answers import as_json, as_plain
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks.views import PLACED, Webhook, WithoutAuthentication, WithSignature, WithToken

STATUS_WORDS: dict[Status, tuple[str, str]] = {
    "rejected": ("Rejected", "bad"),
    "filtered": ("Filtered", "plain"),
    "duplicate": ("Duplicate", "plain"),
    "handshake": ("Handshake", "plain"),
    "accepted": ("Accepted", "info"),
    "held": ("Held", "warn"),
    "started": ("Started", "info"),
    "responded": ("Responded", "good"),
    "completed": ("Completed", "good"),
    "failed": ("Failed", "bad"),
    "lost": ("Lost", "bad"),
    "dropped": ("Dropped", "warn"),
    "superseded": ("Superseded", "plain"),
}
"""The word and the tone of each status."""

FORWARD: dict[Forward, str] = {
    "trigger": "the trigger, as an engine over HTTP does",
    "original": "the call as it came",
}
OPERATORS: dict[Operator, str] = {
    "oneOf": "is one of",
    "notOneOf": "is not one of",
    "contains": "contains one of",
    "beginsWith": "begins with one of",
    "greater": "is greater than",
    "less": "is less than",
    "there": "is there",
    "notThere": "is not there",
}

GROUPS = {"Accepted": "Waiting", "Started": "Delivered", "Responded": "Delivered", "Completed": "Delivered"}
"""A badge's word in the place of a finer one: four words then cover nearly all calls."""

ENGINES: dict[EngineName, str] = {
    "embedded": "built in",
    "temporal": "Temporal",
    "restate": "Restate",
    "dbos": "DBOS",
    "http": "HTTP",
    "shopify-flow": "Shopify Flow",
    "none": "none",
}

STATUS_HELP: dict[Status, str] = {
    "rejected": "The call was rejected; no workflow was started.",
    "filtered": "A condition did not hold, so no workflow was started. It can be started by hand.",
    "duplicate": "The same call had come before; the workflow did not run twice.",
    "handshake": "The sender tested the URL; it was answered, nothing was started.",
    "accepted": "Stored on disk; it is not started yet.",
    "held": "Stored; starting waits until the webhook is released.",
    "started": "The workflow engine has taken the trigger; whether its runs have ended is not known.",
    "responded": "The workflow answered the waiting caller.",
    "completed": "Every run of it completed.",
    "failed": "It could not be started, or a run of it failed. It can be replayed.",
    "lost": "It was started, and the engine does not know it any more. It can be replayed.",
    "dropped": "Stored, and then dropped on purpose.",
    "superseded": "A newer call was started in its place. It can be replayed.",
}

SENT: dict[Placement, str] = {
    "header": "in the header",
    "bearer": "as a Bearer token",
    "basic": "as the password",
    "url": "in the URL",
    "body": "in the body, as the field",
}
"""The words behind "sent", beside the token itself."""

METHODS: dict[Method, tuple[str, str, str]] = {
    "token": ("Static token", "A fixed secret with every call", "Right for most tools and scripts."),
    "hmac": (
        "HMAC SHA-256",
        "Every call signed by its sender",
        "You choose the sender or describe its scheme next.",
    ),
    "none": ("None", "For testing only", "Anybody who knows the URL can call."),
}
"""Its title, what it is, and what to know of it before it is chosen."""

PROVIDER_TITLES = {"generic": "Generic signature", "custom": "Custom scheme"}


def is_wrong(item: InvocationSummary) -> bool:
    """Whether a reader of the list should notice this call at once."""
    return (
        item.status in ("rejected", "failed", "lost", "dropped", "held")
        or item.nobody_listens is True
        or item.caller_gone
        or (item.status == "accepted" and bool(item.error))
        or (item.http_status or 0) >= 500
    )


def has_passed(moment: float) -> bool:
    return moment <= time.time()


def ago(then: float | None, now: float | None = None) -> str:
    """Near things in minutes, far things by their date."""
    if then is None:
        return "never"
    seconds = (time.time() if now is None else now) - then
    if seconds < 0:
        # To the minute: what is seven days from now is in 7 days a second later, too.
        return "in " + _span(30 - seconds if seconds <= -60 else -seconds)
    if seconds < 5:
        return "just now"
    return f"{_span(seconds)} ago" if seconds < 7 * 86400 else _written(then, "%-d %b %Y")


SPANS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def _span(seconds: float) -> str:
    size, unit = next(span for span in SPANS if seconds >= span[0] or span[0] == 1)
    return plural(int(seconds // size), unit)


def possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def lasting(since: float) -> str:
    return _span(time.time() - since)


def exact(then: float | None) -> str:
    return "" if then is None else _written(then, "%-d %b %Y, %H:%M:%S UTC")


def moment(then: float, to_the_minute: bool = False) -> str:
    """The time, and the day if it is not today."""
    is_today = _written(then, "%x") == _written(time.time(), "%x")
    at = "%H:%M" if to_the_minute else "%H:%M:%S"
    return _written(then, at if is_today else f"%-d %b {at}")


def clock(then: float) -> str:
    return _written(then, "%H:%M:%S")


def _written(then: float, form: str) -> str:
    return datetime.fromtimestamp(then, UTC).strftime(form)


def number(value: float) -> str:
    return f"{value:,.0f}"


def plural(count: int, one: str, many: str = "") -> str:
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def kept_for(body_days: int | None) -> str:
    """The time for which bodies of calls and answers are kept."""
    if body_days is None:
        return "as long as their calls"
    return plural(body_days, "day") if body_days else "deleted once the workflow is started"


def size(count: int) -> str:
    if count < 1024:
        return plural(count, "byte")
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 0.05:
        return "<0.1 ms" if value else "0 ms"
    if value < 10:
        return f"{value:.1f} ms"
    if value >= 120_000:
        return _span(value / 1000)
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"


def percent(part: float, whole: float) -> str:
    if not whole:
        return "–"
    share = 100 * part / whole
    return "<0.1%" if 0 < share < 0.1 else f"{share:.1f}%".replace(".0%", "%")


def authentication(webhook: Webhook, titles: dict[str, str] | None = None) -> str:
    """One line that says how callers prove themselves, or that nobody has to call."""
    if state := webhook.schedule_state:
        return f"Fetches {state.in_words}" if not state.paused_at else "Its schedule is paused"
    match webhook.authentication:
        case WithToken() as how:
            return f"Static token, {PLACED[how.placement]}"
        case WithSignature() as how:
            title = (titles or {}).get(how.provider)
            return f"Signed by {title or PROVIDER_TITLES.get(how.provider, how.provider.title())}"
        case WithoutAuthentication():
            return "No authentication"


def initials(title: str) -> str:
    """A sender's letters: Lemon Squeezy is LS, GitHub is GH, Stripe is St."""
    capitals = "".join(letter for letter in title if letter.isupper() or letter.isdigit())
    parts = title.split()
    if len(parts) > 1:
        return "".join(part[0] for part in parts[:2]).upper()
    return capitals[:2] if len(capitals) > 1 else title[:2].title()


def code(value: str) -> str:
    """Why a call ended as it did, in the words that its caller heard."""
    return PROBLEMS[value].title if value in PROBLEMS else value.capitalize()


STEPS = {
    "edited": "Made by editing",
    "credential": "Authentication",
    "duplicate key": "Duplicate protection",
}


def step(name: str) -> str:
    """A check in the story of a call."""
    return STEPS.get(name, name[:1].upper() + name[1:])


def listed(names: list[str], most: int = 3) -> str:
    """One, two and three; of more the first ones and how many others."""
    shown = names if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def error_under(errors: dict[str, str | None], prefix: str) -> str | None:
    """The errors of a list and of its entries."""
    depth = prefix.count(".") + 1
    messages = [message for field, message in errors.items() if field.split(".")[:depth] == prefix.split(".")]
    return "; ".join(filter(None, messages)) or None


def original_values(webhook: Webhook, *names: str) -> str:
    """The settings that a form is about, as they are when it is opened."""
    settings = as_plain(webhook)
    return json.dumps({name: settings[name] for name in names})


def highlighted(text: str, sought: str) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is what was looked for."""
    if not sought:
        return [(text, False)]
    pieces = re.split(f"({re.escape(sought)})", text, flags=re.IGNORECASE)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def verbatim(text: str) -> Markup:
    """The text with its carriage returns, which a browser would read as line feeds."""
    return Markup(str(escape(text)).replace("\r", "&#13;"))


TOKEN_FORM = SecretForm(
    pattern=".{16,}",
    like="",
    unlike="Short enough to be guessed: 16 characters or more are safe.",
)
"""The rule by which a token is judged while it is typed."""


def as_data(value: Any) -> str:
    """JSON for a script of the page, in an attribute."""
    return as_json(value).decode()


def since_then(then: float) -> str:
    """The stretch of time from then to now: the last 12 s."""
    seconds = max(0, round(time.time() - then))
    return f"the last {seconds} s" if seconds < 120 else f"the last {plural(seconds // 60, 'minute')}"
