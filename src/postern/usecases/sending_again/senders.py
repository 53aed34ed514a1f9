"""The APIs of senders that list their deliveries and can send one again.

What they send again is judged like any call. With duplicate protection it starts its workflow once.
"""

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from msgspec import Struct

from postern import presets
from postern.core.documents import Document
from postern.core.fetched import Fetched
from postern.core.moment import moment
from postern.core.problems import FetchTrouble, Refused
from postern.core.webhooks.settings import SendAgainSetting
from postern.usecases.ports import Fetch

MOST_PAGES = 250
MOST_PRESSED = 500
LARGEST_PAGE = 8 * 1024 * 1024


class SentEvent(Struct):
    """An event, or one attempt to deliver it. ``press``: the path that sends it again, if any. ``comes``: the sender tries again."""

    event: str
    what: str
    at: float | None
    press: str
    arrived: bool = False
    comes: bool = False


class Paging(Struct, frozen=True):
    """How a sender's API divides its lists: the member with the rows (empty: the page is the list), what finds the next page in
    an answer, the parameter that asks for it, and the one that asks for large pages."""

    rows: str
    after: Callable[[Any, Fetched], str]
    name: str
    size: dict[str, str]


class SlowDown(Exception):
    """The sender limits how often it is asked."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the sender takes the next request in {seconds:g} s")
        self.seconds = seconds


class SenderApi(Struct):
    """One sender's API at one address. Its answers may name a page, never another host."""

    fetch: Fetch
    base: str
    headers: Mapping[str, str]
    clock: Callable[[], float]

    def __repr__(self) -> str:
        return f"SenderApi({self.base!r})"

    async def get(self, path: str, **query: str) -> tuple[Any, Fetched]:
        answer = await self._ask("GET", path + ("?" + urlencode(query) if query else ""))
        try:
            return msgspec.json.decode(answer.body), answer
        except msgspec.DecodeError:
            raise FetchTrouble("the sender's API did not answer with JSON", answer.status) from None

    async def press(self, path: str) -> None:
        await self._ask("POST", path)

    async def pages(self, path: str, how: Paging, **query: str) -> AsyncIterator[Document]:
        """Yields the rows of all pages, newest first."""
        query |= how.size
        for _ in range(MOST_PAGES):
            document, answer = await self.get(path, **query)
            found = document.get(how.rows) if how.rows and isinstance(document, dict) else document
            for row in found if isinstance(found, list) else ():
                if isinstance(row, dict):
                    yield row
            following = how.after(document, answer)
            if not following or following == query.get(how.name):
                return
            query[how.name] = following

    async def _ask(self, method: str, target: str) -> Fetched:
        content = b"" if method == "POST" else None
        answer = await self.fetch(
            self.base + target,
            method=method,
            headers=self.headers,
            content=content,
            timeout=20.0,
            max_bytes=LARGEST_PAGE,
            max_redirects=0,
        )
        wait = answer.retry_after(self.clock())
        if answer.status == 429 or (answer.status in (403, 503) and wait is not None):
            raise SlowDown(wait or 60.0)
        if answer.status in (401, 403, 404):
            detail = f"the sender's API answered {answer.status}: the account or the token is wrong, or it may not do this"
            raise FetchTrouble(detail, answer.status)
        if not 200 <= answer.status < 300:
            raise FetchTrouble(f"the sender's API answered {answer.status}", answer.status)
        return answer


def _by_link(_: Any, answer: Fetched) -> str:
    for part in (answer.header("link") or "").split(","):
        if 'rel="next"' in part:
            return _parameter(part[part.find("<") + 1 : part.find(">")], "cursor")
    return ""


def _by_next(document: Any, _: Fetched) -> str:
    pages = _inside(document, "meta", "pagination")
    return _parameter(pages.get("next"), "after") if pages.get("has_more") else ""


def _by_last(document: Any, _: Fetched) -> str:
    rows = document.get("data") if isinstance(document, dict) and document.get("has_more") else None
    return str(_inside(rows[-1]).get("id", "")) if isinstance(rows, list) and rows else ""


_GITHUB = Paging("", _by_link, "cursor", {"per_page": "100"})
# It refuses larger pages of events.
_GITLAB = Paging("", lambda _, answer: answer.header("x-next-page") or "", "page", {"per_page": "20"})
_PADDLE = Paging("data", _by_next, "after", {"per_page": "200"})
_RESEND = Paging("data", _by_last, "after", {"limit": "100"})
_STRIPE = Paging("data", _by_last, "starting_after", {"limit": "100"})


def _parameter(url: object, name: str) -> str:
    found = parse_qs(urlsplit(url).query).get(name, []) if isinstance(url, str) else []
    return found[0] if found else ""


def _inside(value: object, *names: str) -> Document:
    """The object at this place, or an empty one."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _seconds(value: object) -> float | None:
    try:
        return moment(str(value), 0.0)
    except ValueError:
        return None


def _date(value: object) -> float | None:
    try:
        return parsedate_to_datetime(str(value)).timestamp()
    except ValueError:
        return None


async def _hook(rows: AsyncIterator[Document], ours: str, field: str, *within: str) -> str:
    """The sender's id of the webhook with this URL."""
    async for row in rows:
        url = _inside(row, *within).get(field)
        if isinstance(url, str) and url.partition("?")[0].rstrip("/") == ours.rstrip("/"):
            return str(row.get("id"))
    raise FetchTrouble(f"the sender knows no webhook with the URL {ours}")


Sent = AsyncIterator[SentEvent]


async def _github(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> Sent:
    """It lists every attempt, with an id that all attempts at an event share."""
    hook = "/app/hook"
    if not setting.account.startswith("app/"):
        hooks = f"/{setting.account}/hooks"
        hook = f"{hooks}/{await _hook(api.pages(hooks, _GITHUB), url, 'url', 'config')}"
    async for row in api.pages(f"{hook}/deliveries", _GITHUB):
        at, status = _seconds(row.get("delivered_at")), row.get("status_code")
        if at is not None and at < since:
            return
        what = ".".join(str(row[name]) for name in ("event", "action") if row.get(name))
        press = f"{hook}/deliveries/{row.get('id')}/attempts"
        arrived = isinstance(status, int) and 200 <= status < 300
        yield SentEvent(str(row.get("guid")), what, at, press, arrived)


async def _gitlab(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> Sent:
    """It keeps events for seven days, without their time. From an answer that is too old on, all events are."""
    kind, _, path = setting.account.partition("/")
    hooks = f"/{kind}/{quote(path, safe='')}/hooks"
    events = f"{hooks}/{await _hook(api.pages(hooks, _GITLAB), url, 'url')}/events"
    async for row in api.pages(events, _GITLAB):
        answered_at = _date(_inside(row, "response_headers").get("Date"))
        if answered_at is not None and answered_at < since:
            return
        sent = _inside(row, "request_headers")
        id = str(sent.get("Idempotency-Key") or sent.get("X-Gitlab-Event-UUID") or row.get("id"))
        arrived = str(row.get("response_status", "")).startswith("2")
        yield SentEvent(id, str(row.get("trigger", "")), None, f"{events}/{row.get('id')}/resend", arrived)


async def _paddle(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> Sent:
    """It lists a replay as another notification of the same event, which cannot be replayed itself."""
    begin = datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z")
    of = await _hook(api.pages("/notification-settings", _PADDLE), url, "destination")
    asked = {"notification_setting_id": of, "from": begin}
    async for row in api.pages("/notifications", _PADDLE, **asked):
        id, status = str(row.get("event_id") or _inside(row, "payload").get("event_id")), row.get("status")
        if status == "failed" and row.get("origin", "event") != "event":
            continue
        what, at = str(row.get("type", "")), _seconds(row.get("occurred_at"))
        press, arrived = f"/notifications/{row.get('id')}/replay", status == "delivered"
        yield SentEvent(id, what, at, press, arrived, status != "failed")


async def _resend(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> Sent:
    events = f"/webhooks/{await _hook(api.pages('/webhooks', _RESEND), url, 'endpoint')}/events"
    async for row in api.pages(events, _RESEND):
        at, id, status = _seconds(row.get("created_at")), str(row.get("id")), row.get("status")
        if at is not None and at < since:
            return
        what, press = str(row.get("type", "")), f"{events}/{id}/replay"
        yield SentEvent(id, what, at, press, status == "success", status != "failed")


async def _stripe(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> Sent:
    """It lists the events that some endpoint did not take, and no program can have it send one again."""
    asked = {"delivery_success": "false", "created[gte]": str(int(since))}
    async for row in api.pages("/v1/events", _STRIPE, **asked):
        id, what, at = str(row.get("id")), str(row.get("type", "")), _seconds(row.get("created"))
        yield SentEvent(id, what, at, "", comes=bool(row.get("pending_webhooks")))


_KINDS: dict[presets.SendAgainKind, Callable[[SenderApi, SendAgainSetting, str, float], Sent]] = {
    "github": _github, "gitlab": _gitlab, "paddle": _paddle, "resend": _resend, "stripe": _stripe,
}  # fmt: skip


async def undelivered(
    kind: presets.SendAgainKind, api: SenderApi, setting: SendAgainSetting, url: str, since: float
) -> list[SentEvent]:
    """The events that no attempt has delivered, each once: as the attempt that comes by itself, or as the newest one."""
    found: dict[str, SentEvent] = {}
    arrived: set[str] = set()
    async for one in _KINDS[kind](api, setting, url, since):
        if one.arrived:
            arrived.add(one.event)
        elif one.comes:
            found[one.event] = one
        else:
            found.setdefault(one.event, one)
    return [one for id, one in found.items() if id not in arrived]


def headers_of(
    kind: presets.SendAgainKind, setting: SendAgainSetting, token: str, now: float
) -> dict[str, str]:
    if kind == "gitlab":
        return {"PRIVATE-TOKEN": token}
    if kind == "github":
        if setting.account.startswith("app/"):
            token = _app_token(token, setting.account.removeprefix("app/"), now)
        return {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
    return {"Authorization": f"Bearer {token}"}


def _app_token(pem: str, app: str, now: float) -> str:
    """A GitHub App's token for nine minutes, signed with its private key."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), None)
    except ValueError:
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise Refused("conflict", "the token of a GitHub App is its private key, as PEM")
    claims = {"iat": int(now) - 60, "exp": int(now) + 540, "iss": app}
    parts = b".".join(
        _base64url(msgspec.json.encode(one)) for one in ({"alg": "RS256", "typ": "JWT"}, claims)
    )
    return (parts + b"." + _base64url(key.sign(parts, padding.PKCS1v15(), hashes.SHA256()))).decode()


def _base64url(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text).rstrip(b"=")
