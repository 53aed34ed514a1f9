"""Which webhooks a list shows, and in which order. All webhooks are gone through for each page, so this is all in memory."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, get_args

from msgspec import Struct

from postern.core.webhooks.grouping import NO_FOLDER, is_inside
from postern.core.webhooks.settings import SignatureAuthentication, WebhookSettings
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook

WebhookState = Literal["enabled", "held", "disabled", "failing", "never_called"]
Sort = Literal["created", "failing", "name", "folder", "last_call", "last_day"]
"""First come: the newest; those with most trouble; A; by folder, then name; the last called; the most called."""
SORTS: tuple[Sort, ...] = get_args(Sort)
WebhookAction = Literal["enable", "disable", "hold", "release", "tag", "untag", "move", "delete"]
"""The actions on many webhooks at once."""
ACTIONS: tuple[WebhookAction, ...] = get_args(WebhookAction)

SCHEDULE = "schedule"
"""Asked for instead of a sender: the webhooks that fetch by themselves."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The part of a webhook by which it is found and put in order."""

    id: str
    addresses: list[str]
    name: str
    folder: str | None = None
    tags: tuple[str, ...] = ()
    sender: str = ""
    """The name of a sender; or token, none."""
    signs: bool = False
    fetches: bool = False
    history_days: int | None = None
    body_days: int | None = None
    enabled: bool = True
    held: bool = False
    served: bool = True
    """False: its settings cannot be used, so its callers hear 503."""
    folded_name: str = field(init=False)
    name_in_order: str = field(init=False)
    folder_in_order: str = field(init=False)
    folded_folder: str = field(init=False)
    """Empty if it is in none, as is ``folder_in_order``."""
    folded_tags: frozenset[str] = field(init=False)
    text: str = field(init=False)
    """A search looks through this."""

    def __post_init__(self) -> None:
        # Computed once, not at each search and each comparison of a sort.
        folder = self.folder or ""
        object.__setattr__(self, "folded_name", self.name.casefold())
        object.__setattr__(self, "folded_folder", folder.casefold())
        object.__setattr__(self, "name_in_order", as_people_count(self.name))
        object.__setattr__(self, "folder_in_order", _folder_in_order(folder))
        object.__setattr__(self, "folded_tags", frozenset(tag.casefold() for tag in self.tags))
        object.__setattr__(self, "text", "\n".join((self.name, folder, *self.tags)).casefold())


class Lately(Struct, frozen=True):
    """Facts about webhooks that their settings do not hold, by id: only those that a list needs."""

    incidents: Mapping[str, int] = {}
    """How many are open."""
    last_calls: Mapping[str, float] = {}
    last_day: Mapping[str, int] = {}
    """Calls of the last 24 hours."""


NOTHING_KNOWN = Lately()


class WebhookFilter(Struct, frozen=True):
    """Every part that is given must hold."""

    search: str = ""
    """Part of the name, the folder or a tag, or the whole id, path or short code; with a * in it, the whole name."""
    sender: str = ""
    state: WebhookState | None = None
    tag: str = ""
    folder: str = ""
    """This folder, or one inside it; with ``alone`` the folder itself."""
    not_called_since: float | None = None
    alone: bool = False

    @property
    def needs_last_calls(self) -> bool:
        return self.not_called_since is not None or self.state == "never_called"


def listed(stored: StoredWebhook, served: bool = True) -> Listed:
    settings = stored.settings
    return Listed(
        stored.id,
        stored.addresses,
        settings.name,
        settings.folder,
        tuple(settings.tags),
        sender_of(settings),
        isinstance(settings.authentication, SignatureAuthentication),
        settings.schedule is not None,
        settings.history_retention_days,
        settings.body_retention_days,
        stored.enabled,
        stored.held,
        served,
    )


def unreadable(webhook: UnreadableWebhook) -> Listed:
    return Listed(webhook.id, webhook.addresses, webhook.name, served=False)


def sender_of(settings: WebhookSettings) -> str:
    how = settings.authentication
    return how.provider if isinstance(how, SignatureAuthentication) else how.method


def matching(
    all_of_them: Iterable[Listed], criteria: WebhookFilter, lately: Lately = NOTHING_KNOWN
) -> list[Listed]:
    webhooks = list(all_of_them)
    if criteria.sender == SCHEDULE:
        webhooks = [webhook for webhook in webhooks if webhook.fetches]
    elif criteria.sender:
        webhooks = [webhook for webhook in webhooks if webhook.sender == criteria.sender]
    if criteria.folder == NO_FOLDER:
        webhooks = [webhook for webhook in webhooks if webhook.folder is None]
    elif criteria.folder:
        webhooks = [
            webhook
            for webhook in webhooks
            if is_inside(webhook.folder, criteria.folder)
            and (not criteria.alone or webhook.folded_folder == criteria.folder.casefold())
        ]
    if criteria.tag:
        tag = criteria.tag.casefold()
        webhooks = [webhook for webhook in webhooks if tag in webhook.folded_tags]
    if "*" in criteria.search:
        pattern = criteria.search.casefold()
        webhooks = [webhook for webhook in webhooks if _is_like(webhook.folded_name, pattern)]
    elif criteria.search:
        text, plain = criteria.search.casefold(), criteria.search
        webhooks = [
            webhook
            for webhook in webhooks
            if text in webhook.text or text == webhook.id.casefold() or plain in webhook.addresses
        ]
    if criteria.not_called_since is not None:
        webhooks = [
            webhook
            for webhook in webhooks
            if lately.last_calls.get(webhook.id, 0.0) < criteria.not_called_since
        ]
    match criteria.state:
        case "enabled":
            webhooks = [webhook for webhook in webhooks if webhook.enabled]
        case "disabled":
            webhooks = [webhook for webhook in webhooks if not webhook.enabled]
        case "held":
            webhooks = [webhook for webhook in webhooks if webhook.held]
        case "failing":
            webhooks = [webhook for webhook in webhooks if is_failing(webhook, lately)]
        case "never_called":
            webhooks = [webhook for webhook in webhooks if webhook.id not in lately.last_calls]
        case None:
            pass
    return webhooks


def _is_like(text: str, pattern: str) -> bool:
    """Whether the pattern, in which * stands for any text, means the whole text. Goes through the text once."""
    first, *between, last = pattern.split("*")
    place, end = len(first), len(text) - len(last)
    if end < place or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in between:
        at = text.find(part, place, end)
        if at < 0:
            return False
        place = at + len(part)
    return True


def is_failing(webhook: Listed, lately: Lately) -> bool:
    return not webhook.served or webhook.id in lately.incidents


def in_order(
    webhooks: list[Listed], sort: Sort, lately: Lately = NOTHING_KNOWN, reverse: bool = False
) -> list[Listed]:
    """Equal webhooks stand in the same order, the newest first, whichever way round the list is."""
    newest = sorted(webhooks, key=_ID, reverse=True)
    if sort == "created":
        return newest[::-1] if reverse else newest
    if sort == "folder":
        newest.sort(key=_NAME)
    keys: dict[str, Any] = {
        "failing": lambda webhook: (webhook.served, -lately.incidents.get(webhook.id, 0)),
        "name": _NAME,
        "folder": lambda webhook: (webhook.folder is None, webhook.folder_in_order),
        "last_call": lambda webhook: -lately.last_calls.get(webhook.id, 0.0),
        "last_day": lambda webhook: -lately.last_day.get(webhook.id, 0),
    }
    return sorted(newest, key=keys[sort], reverse=reverse)


_ID, _NAME = attrgetter("id"), attrgetter("name_in_order")


class Groups(Struct, frozen=True):
    """The senders, tags and folders of webhooks, each with the number of its webhooks."""

    senders: dict[str, int]
    tags: dict[str, int]
    folders: dict[str, int]


def groups_of(webhooks: Iterable[Listed]) -> Groups:
    """The most used first; folders by name. A name written in two ways is shown as it was met first."""
    senders: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    written: dict[str, str] = {}
    for webhook in webhooks:
        if webhook.fetches:
            senders[SCHEDULE] += 1
        elif webhook.sender:
            senders[webhook.sender] += 1
        for tag in webhook.tags:
            tags[written.setdefault(tag.casefold(), tag)] += 1
        if webhook.folder is not None:
            folders[written.setdefault(f"/{webhook.folded_folder}", webhook.folder)] += 1
    return Groups(
        dict(senders.most_common()),
        dict(tags.most_common()),
        dict(sorted(folders.items(), key=lambda pair: _folder_in_order(pair[0]))),
    )


def as_people_count(text: str) -> str:
    """A sort key: Region 2 before Region 10, capitals or not. The length of each number stands before its digits, so that
    numbers compare by value; the 0 before both keeps them where digits are."""
    return _NUMBER.sub(lambda match: f"0{chr(len(match[1]))}{match[1]}", text.casefold())


_NUMBER = re.compile(r"0*([0-9]+)")


def _folder_in_order(folder: str) -> str:
    # The lowest character: folders inside a folder come before its neighbours.
    return as_people_count(folder.replace("/", "\0"))
