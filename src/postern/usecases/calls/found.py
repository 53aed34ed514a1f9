"""The findings about a webhook's rejected calls, in three numbers and in words."""

import asyncio

from postern.core.problems import PROBLEMS
from postern.core.webhooks.webhook import Webhook
from postern.usecases.calls import views
from postern.usecases.calls.judging_again import Judged

MOST_ADMITTED = 1_000
"""Events that are started at once."""
MOST_NAMED = 20


class FoundSoFar:
    """The findings about a webhook's rejected calls so far, the oldest first."""

    def __init__(self, webhook: Webhook | None) -> None:
        self.webhook = webhook
        self.judged = self.calls = self.events = self.came_again = 0
        self.all_judged = False
        self.passing: list[views.Passing] = []
        self.again: list[views.CameAgain] = []
        self.because: dict[views.AdmissionStanding, dict[str, views.Why]] = {
            "still_rejected": {},
            "cannot_be_admitted": {},
        }
        self.task: asyncio.Task[None]
        self._seen: dict[bytes, views.Passing] = {}

    def add(self, call: Judged) -> None:
        self.judged += 1
        match call.standing:
            case "starts":
                self._add_attempt(call)
            case "came_again":
                self.came_again += 1
                if len(self.again) < MOST_ADMITTED:
                    self.again.append(views.CameAgain(call.invocation.id, call.accepted_as))
            case standing:
                title = PROBLEMS[call.code].title if call.code in PROBLEMS else ""
                reason = f"{title[:1].lower()}{title[1:]}" or call.reason
                why = self.because[standing].setdefault(reason, views.Why(reason, 0, []))
                why.calls += 1
                if len(why.invocation_ids) < MOST_NAMED:
                    why.invocation_ids.append(call.invocation.id)

    def _add_attempt(self, call: Judged) -> None:
        self.calls += 1
        known = next((self._seen[key] for key in call.event if key in self._seen), None)
        if known is None:
            assert call.verdict is not None
            known = views.Passing(call.invocation.id, call.invocation.code, call.verdict.fields, 0)
            self.events += 1
            if len(self.passing) < MOST_ADMITTED:
                self.passing.append(known)
        known.attempts += 1
        for key in call.event:
            self._seen.setdefault(key, known)

    def number(self, standing: views.AdmissionStanding) -> int:
        return sum(why.calls for why in self.because[standing].values())

    @property
    def at_least(self) -> str:
        return "" if self.all_judged else "at least "

    @property
    def counted(self) -> str:
        """Like *at least 606 calls, 102 events*."""
        events = f", {number_of(self.events, 'event')}" if self.events != self.calls else ""
        return f"{self.at_least}{number_of(self.calls, 'call')}{events}"

    def in_words(self) -> list[str]:
        """The three numbers, each with its reasons, and what else is to be known."""
        told = [f"{self.counted} would start now."]
        for standing, words in (
            ("still_rejected", "would still be rejected"),
            ("cannot_be_admitted", "cannot be admitted"),
        ):
            why = sorted(self.because[standing].values(), key=lambda entry: -entry.calls)  # type: ignore[index]
            reasons = "; ".join(f"{entry.reason} ({entry.calls:,})" for entry in why)
            number = f"{self.at_least}{number_of(self.number(standing), 'call')}"  # type: ignore[arg-type]
            told.append(f"{number} {words}{': ' if why else ''}{reasons}.")
        told = [f"{sentence[:1].upper()}{sentence[1:]}" for sentence in told]
        if self.came_again:
            others = "is another attempt" if self.came_again == 1 else "are other attempts"
            told.append(
                f"{number_of(self.came_again, 'call')} {others} at what was accepted or admitted: nothing to admit."
            )
        if self.calls and self.webhook is not None and self.webhook.duplicates is None:
            told.append(
                "Duplicate protection is off: calls with the same delivery id or the same body count as one event here, and"
                " what the sender still sends again by itself starts its workflow once more."
            )
        return told


def number_of(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
