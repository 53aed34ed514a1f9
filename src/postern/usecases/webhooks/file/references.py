"""References to secrets in the file."""

from collections.abc import Callable
from typing import Any

from postern.core.documents import Document
from postern.core.problems import FieldError
from postern.core.webhooks.settings import as_document
from postern.core.webhooks.stored import StoredWebhook
from postern.core.webhooks.target import is_variable
from postern.usecases.webhooks.requests import SECRET_PREFIX, SECRETS, SEND_AGAIN, TARGET_KEY, TARGET_PREFIX

SecretOf = Callable[[str, str], str | None]
"""Finds the secret of ``("env", NAME)`` or ``("file", PATH)``; None if there is nothing of that name."""


class References:
    """Follows the references of one entry. If a value is not found, the stored secret stays, with a note."""

    def __init__(
        self, entry: Document, before: StoredWebhook | None, secret_of: SecretOf, notes: list[str]
    ) -> None:
        self.errors: list[FieldError] = []
        self.removed: set[str] = set()
        self._entry = entry
        self._before = before
        self._secret_of = secret_of
        self._notes = notes

    def settings(self) -> Document:
        settings = {name: value for name, value in self._entry.items() if name not in ("id", "shortCode")}
        if isinstance(authentication := settings.get("authentication"), dict):
            settings["authentication"] = authentication = dict(authentication)
            was = as_document(self._before.settings.authentication) if self._before else {}
            same = all(authentication.get(name) == was.get(name) for name in ("method", "provider"))
            for name, kept in SECRETS.get(str(authentication.get("method")), {}).items():
                if name in authentication:
                    value = self._followed(f"authentication.{name}", authentication.pop(name), kept, same)
                    if value is not None:
                        authentication[name] = value
                    elif self._entry["authentication"][name] is None:
                        self.removed.add(name)
        for place, prefix in (("schedule", SECRET_PREFIX), ("target", TARGET_PREFIX)):
            if isinstance(part := settings.get(place), dict) and isinstance(
                headers := part.get("headers"), dict
            ):
                settings[place] = part | {"headers": self._headers(place, prefix, headers)}
        if isinstance(target := settings.get("target"), dict) and "signingSecret" in target:
            key = self._followed("target.signingSecret", target["signingSecret"], TARGET_KEY, True)
            settings["target"] = {**target, "signingSecret": key}
        if isinstance(again := settings.get("sendAgain"), dict) and "token" in again:
            token = self._followed("sendAgain.token", again["token"], SEND_AGAIN, True)
            settings["sendAgain"] = {**again, "token": token}
        return settings

    def _headers(self, place: str, prefix: str, headers: Document) -> Document:
        def followed(name: str, value: Any) -> Any:
            if place == "target" and isinstance(value, str) and is_variable(value):
                return value  # no secret: a value of the call
            return self._followed(f"{place}.headers.{name}", value, prefix + str(name).lower(), True)

        return {name: followed(name, value) for name, value in headers.items()}

    def _followed(self, place: str, reference: Any, kept: str, same_sender: bool) -> Any:
        is_stored = same_sender and self._before is not None and kept in self._before.secrets
        if reference is None:
            return None
        if reference == {"generate": True}:
            return None if is_stored else reference
        kind, where = (
            next(iter(reference.items())) if isinstance(reference, dict) and len(reference) == 1 else ("", "")
        )
        if kind not in ("env", "file") or not isinstance(where, str) or not where:
            self.errors.append(
                FieldError(place, "write {env: NAME} or {file: PATH}: a secret itself does not belong here")
            )
            return None
        value = self._secret_of(kind, where)
        if value is None and is_stored:
            self._notes.append(
                f"{self._entry.get('name')}: {where} is not there, so the stored {place.rpartition('.')[2]} stays."
            )
        elif value is None:
            lacks = "is not set in the environment" if kind == "env" else "is not there or cannot be read"
            self.errors.append(FieldError(place, f"{where} {lacks}"))
        return value
