"""The actor of an HTTP request: an API key in the Authorization header, or a browser's session cookie."""

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.access import accounts
from postern.usecases.access.accounts import SESSION_LONGEST, account_name, actor_of_key, actor_of_session
from postern.usecases.access.known_browsers import KNOWN_FOR, browser_token
from postern.usecases.runtime.gateway import Gateway

ACTOR = "postern.actor"
"""The key in the ASGI scope of a request about which this process itself knows who asks."""
COMMAND_LINE = Actor("command line", "admin")
"""It needs no key: whoever may open the database file may do everything anyway."""

COOKIE = "postern_session"
BROWSER_COOKIE = "postern_browser"
SAFE = ("GET", "HEAD", "OPTIONS")


async def actor_of(gateway: Gateway, request: Request) -> Actor:
    if (known := request.scope.get(ACTOR)) is not None:
        actor: Actor = known
        return actor
    if "authorization" in request.headers:
        if not (key := bearer(request)):
            raise Refused("not_authenticated")
        return await actor_of_key(gateway, key)
    secret = request.cookies.get(COOKIE)
    if not secret:
        raise Refused("not_authenticated")
    check_origin(gateway, request)
    return await actor_of_session(gateway, secret)


def bearer(request: Request) -> str:
    """Returns the token of ``Authorization: Bearer``, or an empty text."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def check_origin_of_stranger(gateway: Gateway, request: Request) -> None:
    """Checks the origin of a request without a session. Browsers send one; other programs need not."""
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        check_origin(gateway, request)


def check_origin(gateway: Gateway, request: Request) -> None:
    """Refuses a changing request of another site's page: a browser sends the cookie with that, too.

    Browsers say the site in Sec-Fetch-Site; where they do not (plain http on a name that is not this
    machine's), in Origin.
    """
    if request.method in SAFE:
        return
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        own = site in ("same-origin", "none")
    else:
        origin = request.headers.get("origin", "")
        parts = urlsplit(gateway.site.base_url)
        own = origin in (
            f"{parts.scheme}://{parts.netloc}",
            f"{request.url.scheme}://{request.headers.get('host', '')}",
        )
    if not own:
        raise Refused(
            "access_denied",
            "A request that changes something with a session must come from this server's own pages.",
        )


async def sign_in(gateway: Gateway, request: Request, name: str, password: str) -> str:
    """Returns the session's secret."""
    agent, browser = request.headers.get("user-agent", ""), request.cookies.get(BROWSER_COOKIE, "")
    return await accounts.sign_in(gateway, name, password, address_of(request), agent, browser)


def remember(gateway: Gateway, response: Response, name: str, secret: str) -> None:
    """Sets the cookie of the session, and the one by which this browser stays known for the name."""
    secure = gateway.site.base_url.startswith("https://")
    kept = (
        (BROWSER_COOKIE, browser_token(gateway, account_name(name)), KNOWN_FOR),
        (COOKIE, secret, SESSION_LONGEST),
    )
    for cookie, value, longest in kept:
        response.set_cookie(
            cookie, value, max_age=int(longest), path="/", secure=secure, httponly=True, samesite="lax"
        )


def forget(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")


def address_of(request: Request) -> str:
    """Returns the client's address, as for a call: behind trusted proxies, the one that they name."""
    return str(request.scope.get("address") or "unknown")
