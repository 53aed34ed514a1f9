"""New calls, each once and in order, even if the connection to the gateway is lost.

The stream only says that there is something new. The calls themselves come from the history, page by page, so
that a lost connection or a full stream loses none of them.
"""

import time
from collections.abc import Callable, Iterator

import msgspec

from postern.surfaces.cli.files import in_words, written_whole
from postern.surfaces.cli.gateway import profiles
from postern.surfaces.cli.gateway.api import PLACE, api
from postern.surfaces.cli.gateway.source import Away
from postern.surfaces.cli.run import end
from postern.usecases.answers import Listing, Time, read_json
from postern.usecases.summary import InvocationSummary

OVERLAP = 10.0
"""Seconds. Calls that come in together may be recorded in another order."""
REMEMBERED = 60.0
"""Seconds, more than the overlap. Ids of shown calls are remembered so long."""
AGAIN_AFTER = (0.2, 0.5, 1.0, 2.0, 5.0)
PAGE = 200
ANSWER_WITHIN = 20.0
"""Seconds. A network that went silent within an answer does not say so; asking again does."""


class ListenedTo(msgspec.Struct):
    """The last place up to which the calls of a gateway were shown."""

    newest: float = 0.0
    shown: dict[str, float] = {}
    """The time of arrival of each shown call, by id."""


class _Stored(msgspec.Struct):
    gateway: str
    place: ListenedTo


class KeptPlace:
    """A file for each name. It is written as calls are shown, and replaced whole."""

    def __init__(self, name: str, gateway: str) -> None:
        if not PLACE.fullmatch(name):
            end("--keep: a name has up to 80 letters, digits, dots, dashes and underscores")
        self._gateway = gateway
        self._file = profiles.file().parent / "listening" / f"{name}.json"
        self.place = self._read(name)

    def _read(self, name: str) -> ListenedTo | None:
        try:
            stored = msgspec.json.decode(self._file.read_bytes(), type=_Stored)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            end(f"{self._file} cannot be read as a place that --keep has written. Delete it.")
        if stored.gateway != self._gateway:
            end(f"--keep: {name} is a place at {stored.gateway}, and commands go to {self._gateway}")
        return stored.place

    def write(self, place: ListenedTo) -> None:
        with in_words(self._file, "written"):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(self._file) as opened:
                opened.write(msgspec.json.encode(_Stored(self._gateway, place)))


class Calls:
    def __init__(
        self, webhooks: tuple[str, ...], on_away: Callable[[str], None], place: ListenedTo | None = None
    ) -> None:
        self._webhook = webhooks[0] if len(webhooks) == 1 else None
        self._webhooks = set(webhooks)
        self._on_away = on_away
        self.place = place or ListenedTo()
        self._goes_on = place is not None
        self.begun = False
        self._from = 0.0
        """Older calls were there before, and are not shown when they move."""

    def follow(self, since: float | None, last: int) -> Iterator[InvocationSummary]:
        """Yields the calls since then, or the last N, and then each new one."""
        api.patient = True
        if self._goes_on:
            since = max(0.0, self.place.newest - OVERLAP)
        tries = 0
        while True:
            try:
                for news in api.source().news(self._webhook):
                    if not self.begun:
                        earlier = self._begin(since, last)
                        self.begun = True
                        yield from self._not_shown(earlier)
                    if news is None:
                        yield from self._missed()
                    else:
                        yield from self._moved(read_json(news, InvocationSummary))
                    tries = 0
            except Away as away:
                if tries == 0:
                    self._on_away(str(away))
                time.sleep(AGAIN_AFTER[min(tries, len(AGAIN_AFTER) - 1)])
                tries += 1

    def _begin(self, since: float | None, last: int) -> list[InvocationSummary]:
        """Returns the calls to show before any new one. Recent calls that are not wanted count as shown from
        now on."""
        newest = self._page(limit=1).items
        recent = self._found(newest[0].received_at - OVERLAP) if newest else []
        earlier = self._found(since) if since is not None else self._found(last=last) if last else []
        ids = {call.id for call in earlier}
        for call in recent:
            if call.id not in ids:
                self._note(call)
        self._from = self.place.newest - OVERLAP
        return earlier

    def _missed(self) -> Iterator[InvocationSummary]:
        yield from self._not_shown(self._found(max(0.0, self.place.newest - OVERLAP)))

    def _moved(self, call: InvocationSummary) -> Iterator[InvocationSummary]:
        if call.id in self.place.shown or call.received_at < max(self._from, self.place.newest - REMEMBERED):
            return
        yield from self._missed()
        yield from self._not_shown([call])  # received long before it was recorded

    def _not_shown(self, calls: list[InvocationSummary]) -> Iterator[InvocationSummary]:
        for call in calls:
            if call.id not in self.place.shown:
                self._note(call)
                if self._is_wanted(call):
                    yield call

    def _note(self, call: InvocationSummary) -> None:
        place, at = self.place, float(call.received_at)
        place.shown[call.id] = at
        place.newest = max(place.newest, at)
        while (oldest := next(iter(place.shown))) and place.shown[oldest] < place.newest - REMEMBERED:
            del place.shown[oldest]

    def _found(self, since: float | None = None, last: int | None = None) -> list[InvocationSummary]:
        """Returns the calls since then, or the last N of the wanted webhooks, the oldest first."""
        calls: list[InvocationSummary] = []
        cursor: str | None = None
        while True:
            page = self._page(PAGE if last is None else min(PAGE, last - len(calls)), since, cursor)
            calls += [call for call in page.items if last is None or self._is_wanted(call)]
            cursor = page.next_cursor
            if cursor is None or len(calls) == last:
                return sorted(calls, key=lambda call: call.id)

    def _is_wanted(self, call: InvocationSummary) -> bool:
        return not self._webhooks or call.webhook_id in self._webhooks

    def _page(
        self, limit: int, since: float | None = None, cursor: str | None = None
    ) -> Listing[InvocationSummary]:
        return api.get(
            Listing[InvocationSummary],
            "invocations",
            webhook_id=self._webhook,
            since=None if since is None else str(Time(since)),
            limit=limit,
            cursor=cursor,
            within=ANSWER_WITHIN,
        )
