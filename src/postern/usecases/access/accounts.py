"""API keys, users, and their sessions."""

import hmac
from contextlib import suppress
from hashlib import sha256

from postern.core.access.accounts import INVITED, LEVELS, Actor, ApiKey, Level, Session, User
from postern.core.access.audit import AuditedChanges
from postern.core.address import limit_key
from postern.core.history.invocation import StoreUnavailable
from postern.core.limits import Tries
from postern.core.problems import FieldError, Refused, existing, invalid, refuse_wrong
from postern.identity import new_api_key, new_id, new_invitation, new_password, new_session_secret
from postern.usecases.access import views
from postern.usecases.access.audit import noted
from postern.usecases.access.known_browsers import known_browser
from postern.usecases.access.passwords import NOBODY, check_password, hashed, matches, outdated
from postern.usecases.answers import Time, shown
from postern.usecases.runtime.gateway import Gateway, require

INVITED_FOR = 7 * 24 * 3600.0
"""Seconds."""
SESSION_IDLE = 12 * 3600.0
SESSION_LONGEST = 30 * 24 * 3600.0
"""Seconds: a session ends this long after its last use, and at the latest this long after signing in."""

FAILED_SIGN_INS_FROM = 100
FAILED_SIGN_INS_AS = 200
"""Failures a minute from one address, and as one name. A person meets a third, narrower limit: for one name from one address.
These are wide, so that somebody who guesses hardly slows the name's owner, or others at the same address. When strangers have
used up a name's limit, an address that has not tried it for a minute still has one try: a right password is kept out for no
longer than that."""

NO_INVITATION = (
    "This link was used, is older than seven days, or was replaced by a newer one. Ask for another."
)
NOT_RIGHT = "The name or the password is not right."

LAST_USED_EVERY = 60.0
"""Seconds: "last used" is no more exact, because recording it at every request would make reading cost a commit."""


async def create_key(gateway: Gateway, actor: Actor, name: str, level: str) -> views.NewApiKey:
    """Make an API key with an access level. Only this answer holds the key itself."""
    require(actor, "admin")
    name = name.strip()
    refuse_wrong([*_level_problem(level), *_name_problem(name, 200)])
    secret = new_api_key()
    now = Time(gateway.clock())
    key = ApiKey(new_id("key"), name, _known(level), secret[:9], now, actor.name, None)
    await gateway.store.api_keys.add(
        key, secret, noted(gateway, actor, "api-key created", key.id, name=key.name, level=level)
    )
    return shown(views.NewApiKey, key, key=secret)


async def keys(gateway: Gateway, actor: Actor) -> list[views.ApiKey]:
    """Every API key with its name, its access level and its last use."""
    require(actor, "admin")
    return await gateway.store.api_keys.all()


async def delete_key(gateway: Gateway, actor: Actor, key_id: str) -> None:
    """Revoke an API key; its next request is refused."""
    require(actor, "admin")
    if not await gateway.store.api_keys.delete(key_id, noted(gateway, actor, "api-key deleted", key_id)):
        raise Refused("not_found", "there is no API key with this id")


async def actor_of_key(gateway: Gateway, secret: str) -> Actor:
    """The actor of a bearer key. Raises ``Refused`` if it is not valid."""
    admin_key = gateway.site.admin_key_digest
    if admin_key is not None and hmac.compare_digest(
        sha256(secret.encode("utf-8", "surrogateescape")).digest(), admin_key
    ):
        return Actor("POSTERN_ADMIN_KEY", "admin", "environment")
    key = await gateway.store.api_keys.of_secret(secret) if secret.startswith("pk_") else None
    if key is None:
        raise Refused("not_authenticated", "the API key is not valid")
    now = gateway.clock()
    if key.last_used_at is None or now - key.last_used_at > LAST_USED_EVERY:
        with suppress(StoreUnavailable):  # reading goes on while nothing can be written
            await gateway.store.api_keys.used(key.id, now)
    return Actor(key.name, key.level, key.id)


# --- signing in ------------------------------------------------------------------------------------------------------


async def sign_in(
    gateway: Gateway, name: str, password: str, address: str, user_agent: str = "", browser: str = ""
) -> str:
    """The new session's secret, for the browser's cookie alone. ``browser``: the cookie of a known browser."""
    name = account_name(name)
    now = gateway.clock()
    user = await gateway.store.people.named(name)
    if user is not None and user.invited_until is not None:
        user = None  # they have no password yet, and nobody may see it in the time that an answer takes
    tries, rank = await _reserved(gateway, name, user, address, browser)
    try:
        right = await matches(NOBODY if user is None else user.password_hash, password, rank, address)
    except Refused:
        gateway.runtime.limits.give_back(*tries)  # the password was not compared
        raise
    if not right or user is None:
        raise Refused("not_authenticated", NOT_RIGHT)
    gateway.runtime.limits.give_back(*tries)
    new_hash = await hashed(password) if outdated(user.password_hash) else None
    secret = new_session_secret()
    session = Session(new_id("ses"), user.id, now, now, address[:80], user_agent[:300])
    actor = Actor(user.name, user.level, user.id, session.id)
    note = noted(gateway, actor, "signed in", session.id, address=session.address)
    if not await gateway.store.people.sign_in(
        session, secret, note, hash_was=user.password_hash, new_hash=new_hash
    ):
        raise Refused("not_authenticated", NOT_RIGHT)
    return secret


async def _reserved(
    gateway: Gateway, name: str, user: User | None, address: str, browser: str
) -> tuple[tuple[Tries, ...], float]:
    """The limits that this try counts against until its password proves right, and its rank in the queue."""
    network = limit_key(address)
    here = Tries(("sign-in", name, network))
    name_alone = Tries(("sign-in as", name), FAILED_SIGN_INS_AS)
    once_a_minute = Tries(("sign-in once", name, network), 1)
    allowed: list[tuple[Tries, ...]]
    if known := known_browser(gateway, name, browser):
        here = Tries(("sign-in with", known))
        allowed, rank = [(here,)], -1.0
    elif await _is_known_network(gateway, user, network):
        allowed, rank = [(here,)], -1.0
    else:
        from_here = Tries(("sign-in from", network), FAILED_SIGN_INS_FROM)
        allowed = [(here, from_here, name_alone), (here, from_here, once_a_minute)]
        rank = gateway.runtime.limits.owed(from_here)
    waits = []
    for tries in allowed:
        wait = gateway.runtime.limits.reserve(*tries)
        if not wait:
            return tries, rank
        waits.append(wait)
    raise Refused(
        "rate_limited",
        "Too many failed sign-ins. Wait a moment, then try again.",
        retry_after=int(min(waits)) + 1,
    )


async def _is_known_network(gateway: Gateway, user: User | None, network: str) -> bool:
    # Asked for an unknown name, too: the time that an answer takes must not tell which names exist.
    pairs = await gateway.store.people.sessions("nobody" if user is None else user.id)
    now = gateway.clock()
    return any(_alive(session, now) and limit_key(session.address) == network for session, _ in pairs)


def account_name(name: str) -> str:
    return name.strip().lower()[:80]


async def actor_of_session(gateway: Gateway, secret: str) -> Actor:
    """The actor of a session's cookie. Raises ``Refused`` if the session is over."""
    pair = await gateway.store.people.session(secret) if secret.startswith("ps_") else None
    now = gateway.clock()
    if pair is None or not _alive(pair[0], now):
        if pair is not None and pair[0].seen_at <= now:
            # Deleted, so that it stays over if the clock is set back.
            with suppress(StoreUnavailable):
                await gateway.store.people.end(pair[0].id, None)
        raise Refused("not_authenticated", "The session is over. Sign in again.")
    session, user = pair
    if now - session.seen_at > LAST_USED_EVERY:
        with suppress(StoreUnavailable):  # as above
            await gateway.store.people.seen(session.id, now)
    return Actor(user.name, user.level, user.id, session.id)


async def sign_out(gateway: Gateway, secret: str) -> None:
    """End this session. Not refused if it is over already."""
    pair = await gateway.store.people.session(secret)
    if pair is not None:
        session, user = pair
        actor = Actor(user.name, user.level, user.id, session.id)
        await gateway.store.people.end(session.id, noted(gateway, actor, "signed out", session.id))


async def sessions(gateway: Gateway, actor: Actor) -> list[views.Session]:
    """The sessions that are open: everybody's for an admin, else one's own."""
    require(actor, "read")
    if actor.level != "admin" and not actor.session:
        raise Refused("access_denied", "an API key has no sessions, and this needs the access level admin")
    pairs = await gateway.store.people.sessions(None if actor.level == "admin" else actor.id)
    return [
        views.session_of(session, user, actor) for session, user in pairs if _alive(session, gateway.clock())
    ]


async def revoke_session(gateway: Gateway, actor: Actor, session_id: str) -> None:
    """End a session: one's own, or, for an admin, anybody's."""
    require(actor, "read")
    if session_id not in {session.id for session in await sessions(gateway, actor)}:
        raise Refused("not_found", "there is no session with this id")
    await gateway.store.people.end(session_id, noted(gateway, actor, "session revoked", session_id))


def _alive(session: Session, now: float) -> bool:
    # Last used in the future: the clock was far ahead then, and the session would last until that time.
    return abs(now - session.seen_at) <= SESSION_IDLE and now - session.created_at <= SESSION_LONGEST


# --- users -----------------------------------------------------------------------------------------------------------


async def ensure_admin(gateway: Gateway, given_password: str) -> str | None:
    """Makes the user ``admin`` at the first start. Returns the password if it was generated, to be printed once."""
    if await gateway.store.people.users():
        return None
    password = given_password or new_password()
    user = User(new_id("usr"), "admin", "admin", await hashed(password), gateway.clock(), "first start")
    note = noted(gateway, Actor("first start", "admin"), "user created", user.id, name="admin", level="admin")
    made = await gateway.store.people.add(user, note)
    return password if made and not given_password else None


async def users(gateway: Gateway, actor: Actor) -> list[views.User]:
    """Every user of the console."""
    require(actor, "admin")
    return [shown(views.User, user) for user in await gateway.store.people.users()]


async def user(gateway: Gateway, actor: Actor, user_id: str) -> views.User:
    """One user."""
    require(actor, "admin")
    return shown(views.User, await _user(gateway, user_id))


async def create_user(
    gateway: Gateway, actor: Actor, name: str, password: str | None, level: str
) -> views.NewUser:
    """Add a user of the console, with an access level. Without a password they are invited: by a link that works once, for
    seven days, they choose one. Who is invited again gets another link, and the first works no more."""
    require(actor, "admin")
    name, people, now = name.strip().lower(), gateway.store.people, gateway.clock()
    refuse_wrong([*_level_problem(level), *_name_problem(name, 80)])
    if password is not None:
        check_password(password)
    secret = new_invitation()
    kept = _invitation(secret, now + INVITED_FOR) if password is None else await hashed(password)
    user = User(new_id("usr"), name, _known(level), kept, now, actor.name)
    note = noted(gateway, actor, "user created", user.id, name=name, level=level)
    if not await people.add(user, note):
        there = await people.named(name)
        if password is not None or there is None or there.invited_until is None:
            raise Refused("conflict", "there is a user of this name already")
        note = noted(gateway, actor, "user invited again", there.id, level=level)
        if not await people.change(
            there.id, note, level=user.level, password_hash=kept, hash_was=there.password_hash
        ):
            raise Refused("conflict", "they have chosen a password meanwhile")
        user = await _user(gateway, there.id)
    link = None if password is not None else f"{gateway.site.base_url}/join/{secret}"
    return shown(views.NewUser, user, invitation=link)


async def invited(gateway: Gateway, secret: str) -> views.User:
    """The user whom this link invites."""
    return shown(views.User, await _invited(gateway, secret))


async def join(gateway: Gateway, secret: str, password: str) -> views.User:
    """Choose a password by the link of an invitation. It works once."""
    user = await _invited(gateway, secret)
    check_password(password)
    actor = Actor(user.name, user.level, user.id)
    note = noted(gateway, actor, "invitation accepted", user.id, password="set")
    new_hash = await hashed(password)
    if not await gateway.store.people.change(
        user.id, note, password_hash=new_hash, hash_was=user.password_hash
    ):
        raise Refused("not_found", NO_INVITATION)
    return shown(views.User, await _user(gateway, user.id))


def _invitation(secret: str, until: float) -> str:
    return f"{INVITED}:{int(until)}:{sha256(secret.encode('utf-8', 'surrogateescape')).hexdigest()}"


async def _invited(gateway: Gateway, secret: str) -> User:
    now = gateway.clock()
    for user in await gateway.store.people.users():
        until = user.invited_until
        is_meant = until is not None and hmac.compare_digest(user.password_hash, _invitation(secret, until))
        if until is not None and is_meant and now < until:
            return user
    raise Refused("not_found", NO_INVITATION)


async def change_user(
    gateway: Gateway, actor: Actor, user_id: str, level: str | None = None, password: str | None = None
) -> views.User:
    """Change a user's level or password. A new password ends their sessions: one may belong to somebody who knew the old one."""
    require(actor, "admin")
    refuse_wrong([] if level is None else _level_problem(level))
    user = await _user(gateway, user_id)
    new_level: Level | None = None
    password_hash: str | None = None
    changes: AuditedChanges = {}
    if level is not None and level != user.level:
        new_level = _known(level)
        changes["level"] = {"before": user.level, "after": level}
    if password is not None:
        check_password(password)
        password_hash = await hashed(password)
        changes["password"] = "set"
    if changes and not await gateway.store.people.change(
        user_id,
        noted(gateway, actor, "user changed", user_id, **changes),
        level=new_level,
        password_hash=password_hash,
        end_sessions_but=None if password is None else actor.session if actor.id == user_id else "",
    ):
        await _user(gateway, user_id)  # refuses if the user was deleted meanwhile
        raise Refused("conflict", "somebody has to stay admin")
    return shown(views.User, await _user(gateway, user_id))


async def delete_user(gateway: Gateway, actor: Actor, user_id: str) -> None:
    """Remove a user and end their sessions. The last admin stays."""
    require(actor, "admin")
    user = await _user(gateway, user_id)
    if not await gateway.store.people.delete(
        user_id, noted(gateway, actor, "user deleted", user_id, name=user.name)
    ):
        raise Refused("conflict", "the last admin cannot be deleted")


async def change_own_password(gateway: Gateway, actor: Actor, old_password: str, new_password: str) -> None:
    """Change one's own password. It ends one's other sessions."""
    require(actor, "read")
    if not actor.session:
        raise Refused("access_denied", "only a signed-in user has a password")
    tries = Tries(("password of", actor.id))
    if wait := gateway.runtime.limits.reserve(tries):
        raise Refused(
            "rate_limited",
            "Too many wrong passwords. Wait a moment, then try again.",
            retry_after=int(wait) + 1,
        )
    user = await _user(gateway, actor.id)
    wrong = invalid("oldPassword", "is not right")
    try:
        right = await matches(user.password_hash, old_password)
    except Refused:
        gateway.runtime.limits.give_back(tries)  # the password was not compared
        raise
    if not right:
        raise wrong
    gateway.runtime.limits.give_back(tries)
    check_password(new_password, "newPassword")
    note = noted(gateway, actor, "password changed", user.id, password="set")
    if not await gateway.store.people.change(
        user.id,
        note,
        password_hash=await hashed(new_password),
        hash_was=user.password_hash,  # somebody may have changed it meanwhile
        end_sessions_but=actor.session,
    ):
        raise wrong


async def _user(gateway: Gateway, user_id: str) -> User:
    return existing(await gateway.store.people.user(user_id), "there is no user with this id")


def _level_problem(level: str) -> list[FieldError]:
    return [] if level in LEVELS else [FieldError("level", f"choose one of {', '.join(LEVELS)}")]


def _name_problem(name: str, longest: int) -> list[FieldError]:
    is_right = 1 <= len(name) <= longest and name.isprintable()
    return [] if is_right else [FieldError("name", f"has 1 to {longest} printable characters")]


def _known(level: str) -> Level:
    return next(name for name in LEVELS if name == level)
