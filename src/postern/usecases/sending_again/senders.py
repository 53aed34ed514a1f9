"""The APIs of senders that list their deliveries and can send one again.

A call that they send again is judged like any other. With duplicate protection it starts its workflow once.
"""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from msgspec import Struct

from postern import presets
from postern.core.choices import complete
from postern.core.documents import Document
from postern.core.fetched import Fetched
from postern.core.moment import moment
from postern.core.problems import FetchTrouble, Refused
from postern.core.webhooks.settings import SendAgainSetting
from postern.usecases.ports import Fetch

MOST_PAGES, MOST_ROWS = 250, 25_000
LARGEST_PAGE = 8 * 1024 * 1024
MOST_VALUES = 400_000
"""Members of one page, counted by its commas before it is read: 8 MiB of small ones would take hundreds of MiB."""
LONGEST_TEXT = 200
LONGEST_LIST = 60.0
"""Seconds. Older deliveries are left for the next time."""
PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between the tries of a request that only reads."""
MINUTE = 60.0


class SentEvent(Struct):
    """An event, or one attempt to deliver it. ``redeliver_path``: the path that sends it again, if any. ``attempt``: the
    newest attempt; empty where the sender lists events alone. ``will_retry``: the sender tries again by itself."""

    event: str
    type: str
    at: float | None
    redeliver_path: str
    arrived: bool = False
    will_retry: bool = False
    attempt: str = ""


class Paging(Struct, frozen=True):
    """How a sender's API divides its lists: the member with the rows (empty: the page is the list), the parameters that ask for
    the next page, as an answer tells them, and the one that asks for large pages."""

    rows: str
    after: Callable[[Any, Fetched], dict[str, str]]
    size: dict[str, str]


class SlowDown(Exception):
    """The sender limits how often it is asked."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the sender takes the next request in {seconds:.0f} s")
        self.seconds = seconds


class SenderApi(Struct):
    """One sender's API at one address. Its answers may name a page, never another host."""

    fetch: Fetch
    base: str
    headers: Mapping[str, str]
    clock: Callable[[], float]
    until: float
    """The end of its time, by the clock of the event loop."""
    rows: int = MOST_ROWS
    cut: bool = False
    """Whether a list was longer than what was read."""

    def __repr__(self) -> str:
        return f"SenderApi({self.base!r})"

    def in_time(self, before: float = 0.0) -> bool:
        return asyncio.get_running_loop().time() < self.until - before

    async def get(self, path: str, query: Mapping[str, str]) -> tuple[Any, Fetched]:
        target = f"{path}?{urlencode(query)}"
        for pause in PAUSES:
            try:
                return await self._read(target)
            except FetchTrouble as trouble:
                if not is_passing(trouble) or not self.in_time(pause):
                    raise
            await asyncio.sleep(pause)
        return await self._read(target)

    async def redeliver(self, path: str) -> None:
        await self._ask("POST", path)

    async def pages(self, path: str, how: Paging, **query: str) -> AsyncIterator[Document]:
        """Yields the rows of all pages, newest first."""
        query |= how.size
        for _ in range(MOST_PAGES):
            document, answer = await self.get(path, query)
            listed = document.get(how.rows) if how.rows and isinstance(document, dict) else document
            for row in listed if isinstance(listed, list) else ():
                self.rows -= 1
                if self.rows < 0:
                    self.cut = True
                    return
                if isinstance(row, dict):
                    yield row
            following = query | how.after(document, answer)
            if following == query:
                return
            query = following
            if not self.in_time():
                break
        self.cut = True

    async def _read(self, target: str) -> tuple[Any, Fetched]:
        answer = await self._ask("GET", target)
        if answer.body.count(b",") > MOST_VALUES:
            raise Refused("conflict", "the sender's API answered with too many values")
        try:
            return msgspec.json.decode(answer.body), answer
        except (msgspec.DecodeError, RecursionError):
            raise Refused("conflict", "the sender's API did not answer with JSON") from None

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
        wait = _limit(answer, self.clock())
        if wait is not None:
            raise SlowDown(wait)
        if answer.status in (401, 403, 404):
            detail = f"the sender's API answered {answer.status}: the account or the token is wrong, or it may not do this"
            raise FetchTrouble(detail, answer.status)
        if not 200 <= answer.status < 300:
            raise FetchTrouble(f"the sender's API answered {answer.status}", answer.status)
        return answer


def is_passing(trouble: FetchTrouble) -> bool:
    """Whether the sender may answer the next time: it did not now, or not to the end, or with 5xx."""
    return trouble.status is None or trouble.status < 300 or trouble.status >= 500


def _limit(answer: Fetched, now: float) -> float | None:
    """The seconds until the sender wants to be asked again. GitHub says it with 403 or 429: Retry-After, otherwise none that remain
    and the time of the next ones, otherwise only in the text, which means a minute. The others say 429 with Retry-After; GitLab's
    limit of events that are sent again and Stripe's say no time."""
    if answer.status not in (403, 429, 503):
        return None
    wait, reset = answer.retry_after(now), answer.header("x-ratelimit-reset") or ""
    if wait is None and answer.header("x-ratelimit-remaining") == "0":
        wait = float(reset) - now if re.fullmatch("[0-9]{1,12}", reset) else MINUTE
    in_words = answer.status == 403 and b"rate limit" in answer.body.lower()
    if wait is None and (answer.status == 429 or in_words):
        wait = MINUTE
    return None if wait is None else max(wait, 1.0)


def _by_link(_: Any, answer: Fetched) -> dict[str, str]:
    match = re.search(r'<([^<>]*)>[^<]*;\s*rel="?next\b', answer.header("link") or "")
    return _parameters(match[1] if match else "")


def _by_number(document: Any, answer: Fetched) -> dict[str, str]:
    following = answer.header("x-next-page")
    return {"page": following} if following else _by_link(document, answer)


def _by_next(document: Any, _: Fetched) -> dict[str, str]:
    pages = _inside(document, "meta", "pagination")
    return _parameters(pages.get("next")) if pages.get("has_more") else {}


def _by_last(name: str) -> Callable[[Any, Fetched], dict[str, str]]:
    def after(document: Any, _: Fetched) -> dict[str, str]:
        rows = document.get("data") if isinstance(document, dict) and document.get("has_more") else None
        last = _inside(rows[-1]).get("id") if isinstance(rows, list) and rows else None
        return {name: str(last)} if last else {}

    return after


_GITHUB = Paging("", _by_link, {"per_page": "100"})
# It refuses larger pages of events.
_GITLAB = Paging("", _by_number, {"per_page": "20"})
_PADDLE = Paging("data", _by_next, {"per_page": "200"})
_RESEND = Paging("data", _by_last("after"), {"limit": "100"})
_STRIPE = Paging("data", _by_last("starting_after"), {"limit": "100"})


def _parameters(url: object) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query)) if isinstance(url, str) else {}


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
    except (ValueError, OverflowError):
        return None


def _part(id: object) -> str:
    """An id as a part of a path, which leads nowhere else."""
    part = quote(str(id), safe="") if isinstance(id, str | int) else ""
    if not part.strip(".") or len(part) > LONGEST_TEXT:
        raise Refused("conflict", "the sender's API lists an id that is none")
    return part


def _text(value: object) -> str:
    return str(value or "")[:LONGEST_TEXT]


def _address(url: object) -> tuple[str, str, int | None, str] | None:
    """The address by which a server is called: case of the host, a standard port, user, query and a last slash do not matter."""
    try:
        parts = urlsplit(str(url).strip())
        host = (parts.hostname or "").rstrip(".").encode("idna").decode()
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return parts.scheme, host, port, unquote(parts.path).rstrip("/")


async def _hook(rows: AsyncIterator[Document], ours: list[str], field: str, *within: str) -> str:
    """The sender's id of the webhook with one of these URLs."""
    addresses = [*map(_address, ours)]
    async for row in rows:
        if _address(_inside(row, *within).get(field)) in addresses:
            return _part(row.get("id"))
    raise Refused("conflict", f"the sender knows no webhook with the URL {' or '.join(ours)}")


SentEvents = AsyncIterator[SentEvent]


async def _github(api: SenderApi, setting: SendAgainSetting, urls: list[str], since: float) -> SentEvents:
    """It lists every attempt, with an id that all attempts at an event share."""
    hook = "/app/hook"
    if not setting.account.startswith("app/"):
        hooks = f"/{setting.account}/hooks"
        hook = f"{hooks}/{await _hook(api.pages(hooks, _GITHUB), urls, 'url', 'config')}"
    async for row in api.pages(f"{hook}/deliveries", _GITHUB):
        at, status, id = _seconds(row.get("delivered_at")), row.get("status_code"), _part(row.get("id"))
        if at is not None and at < since:
            return
        event_type = ".".join(_text(row[name]) for name in ("event", "action") if row.get(name))
        arrived = isinstance(status, int) and 200 <= status < 300
        redeliver = f"{hook}/deliveries/{id}/attempts"
        yield SentEvent(_text(row.get("guid")), event_type, at, redeliver, arrived, attempt=id)


async def _gitlab(api: SenderApi, setting: SendAgainSetting, urls: list[str], since: float) -> SentEvents:
    """It keeps events for seven days, without their time. From an answer that is too old on, all events are."""
    kind, _, path = setting.account.partition("/")
    hooks = f"/{kind}/{quote(path, safe='')}/hooks"
    events = f"{hooks}/{await _hook(api.pages(hooks, _GITLAB), urls, 'url')}/events"
    async for row in api.pages(events, _GITLAB):
        answered_at = _date(_inside(row, "response_headers").get("Date"))
        if answered_at is not None and answered_at < since:
            return
        sent, id = _inside(row, "request_headers"), _part(row.get("id"))
        event = _text(sent.get("Idempotency-Key") or sent.get("X-Gitlab-Event-UUID") or id)
        arrived = str(row.get("response_status", "")).startswith("2")
        yield SentEvent(event, _text(row.get("trigger")), None, f"{events}/{id}/resend", arrived, attempt=id)


async def _paddle(api: SenderApi, setting: SendAgainSetting, urls: list[str], since: float) -> SentEvents:
    """It lists a replay as another notification of the same event, which cannot be replayed itself."""
    begin = datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z")
    of = await _hook(api.pages("/notification-settings", _PADDLE), urls, "destination")
    newest: dict[str, str] = {}
    async for row in api.pages("/notifications", _PADDLE, notification_setting_id=of, **{"from": begin}):
        event, status = (
            _text(row.get("event_id") or _inside(row, "payload").get("event_id")),
            row.get("status"),
        )
        id = _part(row.get("id"))
        attempt = newest.setdefault(event, id)
        if status == "failed" and row.get("origin", "event") != "event":
            continue
        event_type, at = _text(row.get("type")), _seconds(row.get("occurred_at"))
        redeliver, arrived = f"/notifications/{id}/replay", status == "delivered"
        yield SentEvent(event, event_type, at, redeliver, arrived, status != "failed", attempt)


async def _resend(api: SenderApi, setting: SendAgainSetting, urls: list[str], since: float) -> SentEvents:
    events = f"/webhooks/{await _hook(api.pages('/webhooks', _RESEND), urls, 'endpoint')}/events"
    async for row in api.pages(events, _RESEND):
        at, id, status = _seconds(row.get("created_at")), _part(row.get("id")), row.get("status")
        if at is not None and at < since:
            return
        event_type, redeliver = _text(row.get("type")), f"{events}/{id}/replay"
        yield SentEvent(id, event_type, at, redeliver, status == "success", status != "failed")


async def _stripe(api: SenderApi, setting: SendAgainSetting, urls: list[str], since: float) -> SentEvents:
    """It lists the events that some endpoint did not take, and no program can have it send one again."""
    query = {"delivery_success": "false", "created[gte]": str(int(since))}
    async for row in api.pages("/v1/events", _STRIPE, **query):
        id, event_type, at = _text(row.get("id")), _text(row.get("type")), _seconds(row.get("created"))
        yield SentEvent(id, event_type, at, "", will_retry=bool(row.get("pending_webhooks")))


_KINDS: dict[presets.SendAgainKind, Callable[[SenderApi, SendAgainSetting, list[str], float], SentEvents]] = (
    complete(
        {"github": _github, "gitlab": _gitlab, "paddle": _paddle, "resend": _resend, "stripe": _stripe},
        presets.SendAgainKind,
    )
)


async def undelivered(
    kind: presets.SendAgainKind, api: SenderApi, setting: SendAgainSetting, urls: list[str], since: float
) -> list[SentEvent]:
    """The events that no attempt has delivered, each once: as the attempt that comes by itself, or as the newest one."""
    by_event: dict[str, SentEvent] = {}
    arrived: set[str] = set()
    async for sent in _KINDS[kind](api, setting, urls, since):
        if sent.arrived:
            arrived.add(sent.event)
        elif sent.will_retry:
            by_event[sent.event] = sent
        else:
            by_event.setdefault(sent.event, sent)
    return [sent for id, sent in by_event.items() if id not in arrived]


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
        _base64url(msgspec.json.encode(document)) for document in ({"alg": "RS256", "typ": "JWT"}, claims)
    )
    return (parts + b"." + _base64url(key.sign(parts, padding.PKCS1v15(), hashes.SHA256()))).decode()


def _base64url(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text).rstrip(b"=")
