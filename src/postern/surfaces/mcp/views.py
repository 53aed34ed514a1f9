"""What tools answer with, where it is not what the use case answers: a model gets less."""

from typing import Any, Generic, Literal, TypeVar

from postern.usecases.answers import UNSET, Listing, Time, UnsetType, View
from postern.usecases.history.code import Language
from postern.usecases.signatures.views import Provider
from postern.usecases.webhooks.views import Unreadable, Webhook, WithSignature, WithToken

T = TypeVar("T")


class Items(View, Generic[T]):
    items: list[T]


class Deleted(View):
    deleted: str


class Ended(View):
    ended: str


class Forgotten(View):
    forgotten: str


class Source(View):
    source: str


class Code(View):
    language: Language
    code: str


class AuthenticationInShort(View):
    method: Literal["none", "token", "hmac"]
    placement: str | UnsetType = UNSET
    provider: str | UnsetType = UNSET


class WebhookInShort(View):
    id: str
    name: str
    folder: str | None
    tags: list[str]
    url: str
    enabled: bool
    held: bool
    version: int
    call_count: int
    last_call_at: Time | None
    warnings: list[str]
    authentication: AuthenticationInShort


class WebhooksInShort(Listing[WebhookInShort]):
    total: int
    unreadable: list[Unreadable] | UnsetType = UNSET


class ProviderInShort(View):
    name: str
    title: str
    aliases: list[str]
    paste: str
    signed_content: str
    signature: Any


def webhook_in_short(webhook: Webhook) -> WebhookInShort:
    how = webhook.authentication
    return WebhookInShort(
        id=webhook.id,
        name=webhook.name,
        folder=webhook.folder,
        tags=webhook.tags,
        url=webhook.url,
        enabled=webhook.enabled,
        held=webhook.held,
        version=webhook.version,
        call_count=webhook.call_count,
        last_call_at=webhook.last_call_at,
        warnings=webhook.warnings,
        authentication=AuthenticationInShort(
            method=how.method,
            placement=how.placement if isinstance(how, WithToken) else UNSET,
            provider=how.provider if isinstance(how, WithSignature) else UNSET,
        ),
    )


def provider_in_short(about: Provider) -> ProviderInShort:
    return ProviderInShort(
        name=about.name,
        title=about.title,
        aliases=about.aliases,
        paste=about.secret.paste,
        signed_content=about.scheme["signedContent"],
        signature=about.scheme["signature"],
    )
