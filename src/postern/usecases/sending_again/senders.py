"""Ask a sender for what it failed to deliver: its own list of deliveries, and its own button to send one again.

What comes back is proved at the door like any call. With duplicate protection it starts once, however often it comes.
"""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from msgspec import Struct

from postern import presets
from postern.core.documents import Document
from postern.core.moment import moment
from postern.core.problems import FetchTrouble, Refused
from postern.core.webhooks.settings import SendAgainSetting
from postern.usecases.ports import Fetch, Fetched

MOST_PAGES = 50
MOST_PRESSED = 500
LARGEST_PAGE = 8 * 1024 * 1024


class Undelivered(Struct):
    """What the sender says it did not deliver. ``press``: what asks it to send this again; empty where it can only be asked
    by hand. ``comes``: it will be sent by itself."""

    event: str
    what: str
    at: float | None
    press: str
    comes: bool = False


class SlowDown(Exception):
    """The sender wants to be asked less often."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the sender takes the next request in {seconds:g} s")
        self.seconds = seconds


class SenderApi(Struct):
    """One sender's API, at one address: what it answers may name a page, never another host."""

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
            raise FetchTrouble("the sender's API answered something else than JSON", answer.status) from None

    async def press(self, path: str) -> None:
        await self._ask("POST", path)

    async def pages(
        self, path: str, rows: str, after: Callable[[Any, Fetched], str], name: str, **query: str
    ) -> AsyncIterator[Document]:
        """The rows of all pages, the newest first. ``name``: of the parameter that asks for the page ``after`` has named."""
        for _ in range(MOST_PAGES):
            document, answer = await self.get(path, **query)
            found = document.get(rows) if rows and isinstance(document, dict) else document
            for row in found if isinstance(found, list) else ():
                if isinstance(row, dict):
                    yield row
            following = after(document, answer)
            if not following or following == query.get(name):
                return
            query[name] = following

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
            detail = f"the sender's API answered {answer.status}: the account or the token is not right, or may not do this"
            raise FetchTrouble(detail, answer.status)
        if not 200 <= answer.status < 300:
            raise FetchTrouble(f"the sender's API answered {answer.status}", answer.status)
        return answer


Find = Callable[[SenderApi, SendAgainSetting, str, float], Awaitable[list[Undelivered]]]


def _parameter(url: object, name: str) -> str:
    found = parse_qs(urlsplit(url).query).get(name, []) if isinstance(url, str) else []
    return found[0] if found else ""


def _next_link(_: Any, answer: Fetched) -> str:
    for part in (answer.header("link") or "").split(","):
        if 'rel="next"' in part:
            return _parameter(part[part.find("<") + 1 : part.find(">")], "cursor")
    return ""


def _seconds(text: object) -> float | None:
    try:
        return moment(text, 0.0) if isinstance(text, str) else None
    except ValueError:
        return None


def _same(url: object, ours: str) -> bool:
    return isinstance(url, str) and url.partition("?")[0].rstrip("/") == ours.rstrip("/")


async def _hook(rows: AsyncIterator[Document], field: Callable[[Document], object], ours: str) -> str:
    """The sender's own id of the webhook that has this URL."""
    async for row in rows:
        if _same(field(row), ours):
            return str(row.get("id"))
    raise FetchTrouble(f"the sender knows no webhook with the URL {ours}")


def _configured_url(row: Document) -> object:
    config = row.get("config")
    return config.get("url") if isinstance(config, dict) else None


async def _github(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> list[Undelivered]:
    """Every attempt is listed, each with the id that stays the same over all of them."""
    if setting.account.startswith("app/"):
        hook = "/app/hook"
    else:
        hooks = api.pages(f"/{setting.account}/hooks", "", lambda *_: "", "page", per_page="100")
        hook = f"/{setting.account}/hooks/{await _hook(hooks, _configured_url, url)}"
    found: dict[str, Undelivered] = {}
    arrived: set[str] = set()
    async for row in api.pages(f"{hook}/deliveries", "", _next_link, "cursor", per_page="100"):
        at, id = _seconds(row.get("delivered_at")), str(row.get("guid"))
        if at is not None and at < since:
            break
        if isinstance(row.get("status_code"), int) and 200 <= row["status_code"] < 300:
            arrived.add(id)
        what = ".".join(str(row[name]) for name in ("event", "action") if row.get(name))
        found.setdefault(id, Undelivered(id, what, at, f"{hook}/deliveries/{row.get('id')}/attempts"))
    return [one for id, one in found.items() if id not in arrived]


async def _gitlab(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> list[Undelivered]:
    """Kept for seven days, without a time of their own: that of the answer has to do."""
    kind, _, path = setting.account.partition("/")
    of = f"/{kind}/{quote(path, safe='')}/hooks"
    hooks = api.pages(of, "", lambda _, answer: answer.header("x-next-page") or "", "page", per_page="100")
    hook = f"{of}/{await _hook(hooks, lambda row: row.get('url'), url)}"
    found: dict[str, Undelivered] = {}
    arrived: set[str] = set()
    rows = api.pages(
        f"{hook}/events", "", lambda _, answer: answer.header("x-next-page") or "", "page", per_page="100"
    )
    async for row in rows:
        sent = row.get("request_headers") or {}
        id = str(sent.get("Idempotency-Key") or sent.get("X-Gitlab-Event-UUID") or row.get("id"))
        if str(row.get("response_status", "")).startswith("2"):
            arrived.add(id)
        found.setdefault(
            id, Undelivered(id, str(row.get("trigger", "")), None, f"{hook}/events/{row.get('id')}/resend")
        )
    return [one for id, one in found.items() if id not in arrived]


async def _paddle(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> list[Undelivered]:
    """A replay is a notification of its own of the same event, and cannot be replayed itself."""

    def following(document: Any, _: Fetched) -> str:
        pages = (document.get("meta") or {}).get("pagination") or {}
        return _parameter(pages.get("next"), "after") if pages.get("has_more") else ""

    settings = api.pages("/notification-settings", "data", following, "after", per_page="200")
    of = await _hook(settings, lambda row: row.get("destination"), url)
    found: dict[str, Undelivered] = {}
    arrived: set[str] = set()
    begin = datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z")
    rows = api.pages(
        "/notifications",
        "data",
        following,
        "after",
        notification_setting_id=of,
        **{"from": begin},
        per_page="200",
    )
    async for row in rows:
        id, status = str(row.get("event_id") or (row.get("payload") or {}).get("event_id")), row.get("status")
        if status == "delivered":
            arrived.add(id)
        one = Undelivered(
            id,
            str(row.get("type", "")),
            _seconds(row.get("occurred_at")),
            f"/notifications/{row.get('id')}/replay",
        )
        if status != "failed":
            found[id] = msgspec.structs.replace(one, comes=True)
        elif row.get("origin", "event") == "event" and not (id in found and found[id].comes):
            found[id] = one
    return [one for id, one in found.items() if id not in arrived]


async def _resend(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> list[Undelivered]:
    def following(document: Any, _: Fetched) -> str:
        rows = document.get("data") or [] if isinstance(document, dict) and document.get("has_more") else []
        return str(rows[-1].get("id")) if rows else ""

    hooks = api.pages("/webhooks", "data", following, "after", limit="100")
    hook = f"/webhooks/{await _hook(hooks, lambda row: row.get('endpoint'), url)}/events"
    found = []
    async for row in api.pages(hook, "data", following, "after", limit="100"):
        at = _seconds(row.get("created_at"))
        if at is not None and at < since:
            break
        if row.get("status") != "success":
            id = str(row.get("id"))
            comes = row.get("status") != "failed"
            found.append(Undelivered(id, str(row.get("type", "")), at, f"{hook}/{id}/replay", comes))
    return found


async def _stripe(api: SenderApi, setting: SendAgainSetting, url: str, since: float) -> list[Undelivered]:
    """Lists what some endpoint did not take, and has no button."""

    def following(document: Any, _: Fetched) -> str:
        rows = document.get("data") or [] if isinstance(document, dict) and document.get("has_more") else []
        return str(rows[-1].get("id")) if rows else ""

    query = {"delivery_success": "false", "created[gte]": str(int(since)), "limit": "100"}
    rows = api.pages("/v1/events", "data", following, "starting_after", **query)
    return [
        Undelivered(
            str(row.get("id")),
            str(row.get("type", "")),
            row.get("created"),
            "",
            bool(row.get("pending_webhooks")),
        )
        async for row in rows
    ]


KINDS: dict[presets.SendAgainKind, Find] = {
    "github": _github, "gitlab": _gitlab, "paddle": _paddle, "resend": _resend, "stripe": _stripe,
}  # fmt: skip


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
            "X-GitHub-SenderApi-Version": "2022-11-28",
        }
    return {"Authorization": f"Bearer {token}"}


def _app_token(pem: str, app: str, now: float) -> str:
    """What a GitHub App shows for itself: a token for nine minutes, signed with its private key."""
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
