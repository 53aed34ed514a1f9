"""Warnings about settings that are allowed, but probably not what the owner wants."""

from collections.abc import Callable, Sequence

from postern import presets
from postern.core.schedules import hours
from postern.core.signatures.encoding import is_stand_in
from postern.core.signatures.select import parse_ref
from postern.core.signatures.signed_content import neighbours
from postern.core.webhooks.bounds import place_of_key
from postern.core.webhooks.settings import (
    LONGEST_WINDOW,
    Authentication,
    ConditionRow,
    NoAuthentication,
    Resolved,
    SignatureAuthentication,
    TokenAuthentication,
)
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.webhooks.resolving import scheme_of
from postern.usecases.webhooks.views import ScheduleState

SHORT_TOKEN = 16
NAMES = {"main": "signing secret", "second": "second signing secret"}


def awaits_secret(webhook: StoredWebhook) -> bool:
    """Whether the sender's secret has not been set yet, so that no call can be genuine."""
    known = [secret for field, secret in webhook.secrets.items() if field in NAMES]
    return bool(known) and all(is_stand_in(secret.value) for secret in known)


def warnings(webhook: StoredWebhook, schedule: ScheduleState | None, history_days: int) -> list[str]:
    authentication = webhook.settings.authentication
    unreadable = dict.fromkeys(webhook.unreadable_secrets.values())
    sentences = [f"Every call is rejected with 503: {why}." for why in unreadable]
    if schedule is not None and schedule.paused_at:
        failures = schedule.consecutive_failures
        sentences.append(
            f"The schedule paused itself after {failures} failed runs: {schedule.paused_reason}. Resume it, or run it now."
        )
    if webhook.settings.cors.enabled and not webhook.settings.cors.origins:
        sentences.append(
            "CORS is on and names no origin: every call of a page is rejected. * is every origin."
        )
    kept = webhook.settings.history_retention_days or history_days
    bodies = webhook.settings.body_retention_days
    if bodies is not None and bodies > kept:
        sentences.append(
            f"Bodies should be kept for {bodies} days, but their calls are deleted after {kept}."
        )
    filtered = webhook.settings.filtered_retention_days
    if filtered is not None and filtered > min(kept, kept if bodies is None else bodies):
        sentences.append(
            f"Bodies of filtered calls should be kept for {filtered} days, but bodies are deleted before."
        )
    main, second = (webhook.secrets.get(name) for name in NAMES)
    if main and second and main.value == second.value and not is_stand_in(main.value):
        sentences.append("The second secret is the same as the main one: paste the new one, or remove it.")
    match authentication:
        case SignatureAuthentication():
            sentences += _about_signatures(webhook, authentication)
        case NoAuthentication():
            sentences.append(
                "Anybody who knows the URL can call this webhook. Use method None for testing only."
            )
            if webhook.settings.path:
                sentences.append(
                    "The path can be guessed, and nothing else proves the caller. Choose a method, or remove the path."
                )
        case TokenAuthentication():
            if any(len(secret.value) < SHORT_TOKEN for secret in webhook.secrets.values()):
                sentences.append(
                    "A token of this webhook is short enough to be guessed. Have one generated, or paste 16 characters or more."
                )
    return sentences


def _about_signatures(webhook: StoredWebhook, authentication: SignatureAuthentication) -> list[str]:
    sentences = []
    if awaits_secret(webhook):
        sender = presets.get(authentication.provider)
        sentences.append(
            f"Every call is rejected until the {sender.secret_name} of {sender.title} is set here. Where it is: {sender.secret.where}."
        )
    else:
        sentences += _about_secrets(webhook, authentication.provider)
    sentences += _about_duplicates(webhook, authentication.provider)
    if scheme_of(webhook.resolved).signs_body or authentication.require_timestamp_and_digest:
        # Otherwise it is said below of the whole body.
        sentences += about_rows(
            authentication, webhook.resolved, webhook.settings.conditions, lambda _: False
        )
    if authentication.provider == "custom":
        sentences += [
            f"Nothing divides {pair} in what is signed: whoever sees one call can move characters from one to the other, and the "
            "signature stays right. If you can change the sender, have it put a character between them that neither holds."
            for pair in neighbours(scheme_of(webhook.resolved).signed_content)
        ]
    if not scheme_of(webhook.resolved).signs_body and not authentication.require_timestamp_and_digest:
        sentences.append(
            "The signature does not cover the body: whoever sees one call can send any body with it, for ever. "
            "Have the sender add X-Webhook-Timestamp and X-Webhook-Content-SHA256, and require both."
            if authentication.provider == presets.GENERIC
            else "The signature does not cover the body as a whole: whoever sees one call can send another with it."
        )
    return sentences


def about_rows(
    how: Authentication, resolved: Resolved, rows: Sequence[ConditionRow], masked: Callable[[bytes], bool]
) -> list[str]:
    """Warnings about places that rows read and that the signature does not cover, or the history masks."""
    named = [pair for row in rows for pair in _places(row, how)]
    refs = dict.fromkeys(parse_ref(place) for _, place in named)
    words = {parse_ref(place): of for of, place in named}
    sentences = [
        f"The history masks {words[ref]}, so a condition reads *** there."
        for ref in refs
        if ref.kind == "header" and masked(ref.name.encode())
    ]
    if not isinstance(how, SignatureAuthentication):
        return sentences
    scheme, by_digest = scheme_of(resolved), how.require_timestamp_and_digest
    return sentences + [
        f"The signature does not cover {words[ref]}, which a condition reads: whoever has seen one call can send it again with another value there."
        for ref in refs
        if not (scheme.signs(ref) or (ref.kind == "body" and by_digest))
    ]


def _places(row: ConditionRow, how: Authentication) -> list[tuple[str, str]]:
    """A row's place as its owner wrote it, and each place of the call that it reads."""
    if row.of == "event":
        places = presets.event_places(how.provider if isinstance(how, SignatureAuthentication) else "")
        return [(f"the event ({place})", place) for place in places]
    kind, name = place_of_key(row.of)
    return [(row.of, f"{kind}:{name.partition('[*]')[0] or name}")]


def _about_duplicates(webhook: StoredWebhook, provider: str) -> list[str]:
    sender, setting = presets.load().get(provider), webhook.settings.duplicate_protection
    if not sender or not setting.enabled:
        return []
    if setting.window_seconds >= min(sender.sender.retry_hours * 3600, LONGEST_WINDOW):
        return []
    return [
        f"{sender.title} may send a call again for {sender.sender.retry_hours} hours, and a duplicate is known for"
        f" {hours(setting.window_seconds)}: one that comes later starts the workflow again. Make the window longer."
    ]


def _about_secrets(webhook: StoredWebhook, provider: str) -> list[str]:
    sentences = []
    for field, name in NAMES.items():
        if field not in webhook.secrets or is_stand_in(webhook.secrets[field].value):
            continue
        secret = webhook.secrets[field].value.decode("utf-8", "replace")
        if secret != secret.strip():
            sentences.append(
                f"The {name} has blanks around it, which are signed with. Senders rarely mean that."
            )
        elif problem := presets.problem_of(provider, secret):
            sentences.append(f"The {name}: {problem[:1].lower()}{problem[1:]}")
    return sentences
