"""Reading and acknowledging incidents. They are opened and closed in `judging.py`."""

from collections.abc import AsyncIterator, Iterator

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter
from postern.core.history.marks import LONGEST_NOTE
from postern.core.moment import to_the_minute
from postern.core.problems import PROBLEMS, Refused, existing, invalid
from postern.core.schedules import InvalidSchedule
from postern.core.verdict import UNPROVEN
from postern.core.visible import can_be_stored
from postern.core.watch.alarms import ADMITTED, ALARMS, FAILS_CALLERS, LATELY, WEEK, AlarmKind, Incident
from postern.core.watch.rhythm import DAY, DAYS, Proposal, propose
from postern.usecases.access.audit import noted
from postern.usecases.alarms import views
from postern.usecases.answers import Listing, Time, first_page, page_size, shown
from postern.usecases.calls import readmission
from postern.usecases.calls.found import number_of
from postern.usecases.history import history
from postern.usecases.history.rows import rows_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.one_at_a_time import OneAtATime
from postern.usecases.signatures import signatures
from postern.usecases.stored_webhook import stored
from postern.usecases.summary import InvocationSummary

SAMPLES = 3
LOOKS_FOR = 1.0
"""Seconds for which rejected calls are judged once more. At least the calls found by then would start."""
MOST_LEFT = 10_000
MISMATCHES = ("signature_mismatch", "credential_mismatch")
ENGINE_AWAY = {"engine cannot start", "calls wait"}
NOTICED_AFTER = 60.0
"""Seconds after which an engine that is away, or is back, has been noticed."""
GATEWAY = "gateway"
"""Given instead of a webhook's id, it selects the gateway's own incidents."""
_READER = Actor("alarms", "read")

line = OneAtATime("rhythm", 20, "Several rhythms are being looked for; try again in a moment.")


async def listing(
    gateway: Gateway,
    actor: Actor,
    limit: int = 50,
    cursor: str | None = None,
    webhook_id: str | None = None,
    only_open: bool = False,
) -> Listing[views.Incident]:
    """Incidents, newest first: all of them, or only those that are open."""
    require(actor, "read")
    limit = page_size(limit)
    owner = "" if webhook_id == GATEWAY else webhook_id
    rows = await gateway.store.incidents.page(limit + 1, cursor, owner, only_open)
    page, next_cursor = first_page(rows, limit, lambda incident: incident.id)
    return Listing(items=[view_of(gateway, incident) for incident in page], next_cursor=next_cursor)


async def show(gateway: Gateway, actor: Actor, incident_id: str) -> views.IncidentStory:
    """One incident with its newest calls, what would make them verify, and what can be done now."""
    require(actor, "read")
    incident = await _found(gateway, incident_id)
    newest = await _newest(gateway, actor, incident, SAMPLES)
    samples = [await _sample(gateway, actor, incident, call) for call in newest]
    return shown(
        views.IncidentStory,
        view_of(gateway, incident),
        left=await _left(gateway, incident),
        samples=[sample for sample, _ in samples],
        next_actions=[action async for action in _next_actions(gateway, actor, incident, samples)],
    )


async def at_a_glance(
    gateway: Gateway, actor: Actor, incident_id: str, most: int = 50
) -> tuple[views.Incident, int | None, int, list[InvocationSummary]]:
    """An incident, how many of its calls are left, of how many, and its newest calls: what can be asked for again and again."""
    require(actor, "read")
    incident = await _found(gateway, incident_id)
    newest, waited = await _newest(gateway, actor, incident, most), await _waited(gateway, incident)
    of = incident.count if waited is None else len(waited)
    return view_of(gateway, incident), await _left(gateway, incident), of, newest


async def _left(gateway: Gateway, incident: Incident) -> int | None:
    if incident.kind in FAILS_CALLERS:
        left = await gateway.store.incidents.left(incident, MOST_LEFT)
        if not left and incident.closed_at is None:
            gateway.runtime.may_be_over.set()
        return left
    if (waited := await _waited(gateway, incident)) is not None:
        return sum(still for _, still in waited)
    return 0 if incident.closed_because == ADMITTED else None


async def _waited(gateway: Gateway, incident: Incident) -> list[tuple[str, bool]] | None:
    """The calls that waited while the engine was away, and whether they still do; None if that is not what happened."""
    if incident.kind != "gateway" or not incident.reasons.keys() & ENGINE_AWAY:
        return None
    since, until = incident.first_at - NOTICED_AFTER, incident.last_at + NOTICED_AFTER
    return await gateway.store.incidents.waited(since, until, MOST_LEFT)


async def acknowledge(gateway: Gateway, actor: Actor, incident_id: str, note: str = "") -> views.Incident:
    """Acknowledge an incident: channels are not told of it any more. It stays open until all is well. The note says what you do
    about it."""
    require(actor, "write")
    text = note.strip()
    if len(text) > LONGEST_NOTE or not can_be_stored(text):
        raise invalid("note", f"has at most {LONGEST_NOTE:,} characters, which are text")
    incident = await _found(gateway, incident_id)
    entry = noted(gateway, actor, "incident acknowledged", incident_id, kind=incident.kind)
    if not await gateway.store.incidents.acknowledge(incident_id, gateway.clock(), actor.name, text, entry):
        raise Refused("conflict", "this incident is over, or somebody has acknowledged it before")
    gateway.runtime.incidents = await gateway.store.incidents.open()
    return view_of(gateway, await _found(gateway, incident_id))


async def rhythm(
    gateway: Gateway, actor: Actor, webhook_id: str, time_zone: str = ""
) -> views.ProposedRhythm:
    """Propose the rhythm that the calls of the last 30 days have kept, with how often it would have rung. Nothing is proposed
    if there were few calls, or if they keep hours and it is not said in which time zone."""
    require(actor, "read")
    await stored(gateway, webhook_id)
    until = int(gateway.clock() // 60)
    calls: list[int] = []
    for since in range(until - DAYS * DAY, until, WEEK):
        # In parts: other requests wait for one part at most.
        calls += await gateway.store.incidents.call_minutes(webhook_id, since, min(since + WEEK, until))
    try:
        proposal: Proposal | None = await line.run(
            lambda: propose(calls, until, time_zone or "UTC", gateway.alarms.quiet_days)
        )
    except InvalidSchedule as error:
        raise Refused("invalid_request", f"timeZone: {error}") from None
    if proposal is None:
        said = f"The {len(calls)} minutes with calls in the last {DAYS} days are too few, or too irregular, to propose a rhythm."
        return views.ProposedRhythm([], time_zone or "UTC", "", said, DAYS, [])
    if proposal.keeps_hours and not time_zone:
        said = "These calls keep to hours. Say the time zone of the people, like Europe/Berlin."
        return views.ProposedRhythm([], "UTC", "", said, DAYS, [])
    rows, rings = [str(row) for row in proposal.rhythm.rows], [Time(minute * 60) for minute in proposal.rings]
    return views.ProposedRhythm(rows, time_zone or "UTC", proposal.in_words, _evidence(proposal), DAYS, rings)


def _evidence(proposal: Proposal) -> str:
    said = f"{proposal.in_words[:1].upper()}{proposal.in_words[1:]}. Over the last {DAYS} days it would {_rung(len(proposal.rings))}"
    if proposal.moved > len(proposal.rings):
        said += f"; with each call an hour earlier or later, {_rung(proposal.moved)}: the time zone must be that of the calls"
    return f"{said}."


def _rung(often: int) -> str:
    return {0: "never have rung", 1: "have rung once"}.get(often, f"have rung {often} times")


async def _found(gateway: Gateway, incident_id: str) -> Incident:
    return existing(await gateway.store.incidents.get(incident_id), "there is no incident with this id")


def view_of(gateway: Gateway, incident: Incident) -> views.Incident:
    listed = gateway.runtime.directory.listed_by_id(incident.webhook_id)
    return shown(
        views.Incident,
        incident,
        webhook_id=incident.webhook_id or None,
        webhook_name=listed.name if listed else None,
        sentence=sentence_of(incident) + _rests_until(incident, gateway.clock()),
        sender_clock=clock_of(_preset(gateway, incident.webhook_id), incident, gateway.clock()),
        told=[views.told_of(state) for state in incident.told.values()],
    )


def _rests_until(incident: Incident, now: float) -> str:
    """The gateway's own incident stays open for a while after its trouble, so that one that comes and goes is told of once."""
    if incident.webhook_id or incident.closed_at is not None or now - incident.last_at <= NOTICED_AFTER:
        return ""
    over = to_the_minute(incident.last_at + LATELY * 60)
    return f" It was seen last at {to_the_minute(incident.last_at)}: if it does not come again, this is over soon after {over}."


def clock_of(preset: presets.Preset | None, incident: Incident, now: float) -> str | None:
    """Says what the sender does with the failed calls, by its own rules, counted from the first of them."""
    if preset is None or not preset.sender.retry_hours or not ALARMS[incident.kind].is_heard:
        return None
    lasts = preset.sender.retry_hours * 3600
    name, then = preset.title, f", and {preset.sender.then}" if preset.sender.then else ""
    given_up = incident.first_at + lasts
    if incident.closed_at is None and now < given_up:
        return f"{name} gives the first of them up in {_rounded(given_up - now)} at the latest{then}."
    if incident.closed_at is None:
        still = f" It may still retry calls since {to_the_minute(now - lasts)} by itself."
        return f"{name} gave the first of them up at {to_the_minute(given_up)}{then}.{still}"
    if now < incident.last_at + lasts:
        since = max(incident.first_at, now - lasts)
        return f"{name} sends calls since {to_the_minute(since)} again by itself, until {to_the_minute(incident.last_at + lasts)}."
    return f"{name} sends none of them by itself any more."


def _rounded(seconds: float) -> str:
    """A duration like 3 minutes, 2 h 40, 2 days."""
    minutes = max(0, round(seconds / 60))
    if minutes >= 120:
        return f"{minutes // 60} h {minutes % 60:02}" if minutes < 48 * 60 else f"{minutes // 1440} days"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def _in_words(kind: AlarmKind, reason: str) -> str:
    match kind:
        case "rejected":
            title = PROBLEMS[reason].title if reason in PROBLEMS else reason
            return f"{title[:1].lower()}{title[1:]}"
        case "not_started":
            words = {
                "refused": "the engine or target did not take it",
                "waits": "still not started after several tries",
            }
            return words.get(reason, reason)
        case "answers":
            return {"502": "the workflow failed", "504": "late"}.get(reason, reason)
        case "runs_failed" | "gateway" | "silence":
            return reason


HEADLINES: dict[AlarmKind, tuple[str, str]] = {
    "rejected": ("call", "rejected"),
    "not_started": ("call", "not started"),
    "runs_failed": ("call", "failed"),
    "answers": ("caller", "answered with an error"),
    "gateway": ("", "needs help"),
    "silence": ("", "no call"),
}


def headline_of(incident: Incident | views.Incident) -> str:
    """A few words that go before *since*."""
    what, became = HEADLINES[incident.kind]
    return f"{number_of(incident.count, what)} {became}" if what else became


def sentence_of(incident: Incident) -> str:
    """Says what has happened in one sentence, with nothing in it that a caller sent."""
    why = ", ".join(
        f"{_in_words(incident.kind, name)} ({count:,})" for name, count in incident.reasons.items()
    )
    match incident.kind:
        case "rejected":
            return f"{number_of(incident.count, 'call')} rejected: {why}. {incident.detail}".strip()
        case "not_started":
            return (
                f"{number_of(incident.count, 'call')} could not be started: {why}. {incident.detail}".strip()
            )
        case "runs_failed":
            runs = sum(incident.reasons.values())
            often = f", in {runs:,} runs" if runs > incident.count else ""
            return f"The workflow failed for {number_of(incident.count, 'call')}{often}."
        case "answers":
            return f"{number_of(incident.count, 'call')} answered with an error: {why}."
        case "gateway":
            return incident.detail
        case "silence":
            return f"No call since {to_the_minute(incident.first_at)}. {incident.detail}"


async def values_of(gateway: Gateway, incident: Incident) -> list[dict[str, str]]:
    """The mapped values of its newest calls, without callers who have proven nothing: no stranger writes in a message."""
    calls = await _newest(gateway, _READER, incident, SAMPLES)
    return [call.fields for call in calls if call.fields and call.code not in UNPROVEN]


async def _newest(gateway: Gateway, actor: Actor, incident: Incident, most: int) -> list[InvocationSummary]:
    calls: list[InvocationSummary] = []
    if incident.kind in FAILS_CALLERS:  # by their runs and starts: a call may have come long before
        ids = await gateway.store.incidents.failed_calls(incident, most)
    else:
        ids = [call for call, _ in await _waited(gateway, incident) or ()][:most]
    if ids:
        stories = {story.invocation.id: story for story in await gateway.store.history.some(ids)}
        calls = await rows_of(gateway, [stories[call_id] for call_id in ids if call_id in stories])
    for criteria in _of_incident(incident):
        calls += (await history.listing(gateway, actor, criteria, most)).items
    return calls[:most]


async def _sample(
    gateway: Gateway, actor: Actor, incident: Incident, call: InvocationSummary
) -> tuple[views.IncidentSample, int | None]:
    """The call, and the number of the first fix that its explanation offers."""
    changes = []
    if incident.kind == "rejected":
        changes = (await signatures.explain(gateway, actor, call.id)).would_verify_if
    sample = views.IncidentSample(
        call.id,
        call.received_at,
        call.code,
        call.detail or call.error or "",
        [variation.change for variation in changes],
    )
    return sample, next(
        (place for place, variation in enumerate(changes) if variation.patch is not None), None
    )


def _of_incident(incident: Incident) -> Iterator[HistoryFilter]:
    about = {"webhook_id": incident.webhook_id, "since": incident.first_at, "until": incident.closed_at}
    match incident.kind:
        case "rejected":
            for code in incident.reasons:
                yield HistoryFilter(code=code, **about)  # type: ignore[arg-type]
        case "not_started":
            if "waits" in incident.reasons and incident.closed_at is None:
                yield HistoryFilter(status="accepted", webhook_id=incident.webhook_id)
        case "answers":
            yield HistoryFilter(answer="5xx", **about)  # type: ignore[arg-type]
        case "gateway" | "runs_failed" | "silence":
            return


async def _next_actions(
    gateway: Gateway,
    actor: Actor,
    incident: Incident,
    samples: list[tuple[views.IncidentSample, int | None]],
) -> AsyncIterator[views.NextAction]:
    if gateway.runtime.directory.by_id(incident.webhook_id) is None:
        return
    match incident.kind:
        case "rejected":
            recheck = await readmission.recheck_within(gateway, actor, incident.webhook_id, LOOKS_FOR)
            if recheck.calls:
                yield views.NextAction("admit", f"Admit {recheck.counted}", recheck.calls)
            fixed = next(((sample, fix) for sample, fix in samples if fix is not None), None)
            refused = {PROBLEMS[reason].status for reason in incident.reasons if reason in PROBLEMS}
            if incident.closed_at is None and fixed is not None:
                text = f"Fix the setting: {fixed[0].would_verify_if[fixed[1]]}"
                yield views.NextAction("fix", text, invocation_id=fixed[0].invocation_id, fix=fixed[1])
            elif incident.closed_at is None and not recheck.calls and 401 in refused:
                wrong = next((call.invocation_id for call, _ in samples if call.code in MISMATCHES), None)
                yield views.NextAction("secrets", "Look at its secrets", invocation_id=wrong)
            if _can_be_asked(gateway, incident.webhook_id):
                yield views.NextAction("send_again", "See what the sender did not deliver")
        case "not_started" | "runs_failed":
            # However early they came: what failed is what is replayed.
            criteria = HistoryFilter(status="failed", webhook_id=incident.webhook_id)
            failed = (await history.count(gateway, actor, criteria)).calls
            if failed:
                yield views.NextAction("replay", f"Replay {number_of(failed, 'call')}", failed)
        case "silence":
            yield views.NextAction("rhythm", "Change the rhythm")
            if _can_be_asked(gateway, incident.webhook_id):
                yield views.NextAction("send_again", "See what the sender did not deliver")
        case "gateway" if incident.closed_at is None:
            yield views.NextAction("secrets", "Look at its secrets")
        case "gateway" | "answers":
            pass


def _can_be_asked(gateway: Gateway, webhook_id: str) -> bool:
    """Whether its sender lists what it did not deliver."""
    preset = _preset(gateway, webhook_id)
    return preset is not None and preset.send_again is not None and preset.send_again.kind is not None


def _preset(gateway: Gateway, webhook_id: str) -> presets.Preset | None:
    webhook = gateway.runtime.directory.by_id(webhook_id)
    return presets.load().get(webhook.provider) if webhook is not None else None
