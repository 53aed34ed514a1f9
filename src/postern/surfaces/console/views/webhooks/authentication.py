"""Reads the form about authentication: the method, its settings, its secrets."""

import json

from postern.core.documents import Document
from postern.core.problems import invalid
from postern.core.signatures.scheme import FIELDS
from postern.surfaces.console.visit import Form, PageValues
from postern.usecases.webhooks.preparing import generated
from postern.usecases.webhooks.requests import SECRETS
from postern.usecases.webhooks.views import ShownAuthentication, WithSignature

GENERATE = {"generate": True}

SHAPES = {
    "header": ("The signature stands alone in a header", "X-Signature: 5f1d…"),
    "prefixed": ("With its algorithm in front", "X-Signature: sha256=5f1d…"),
    "listed": ("In a list, with the time", "X-Signature: t=1700000000,v1=5f1d…"),
}
"""Nearly every scheme has one of three shapes; the rest of its form follows from that."""

SECRET_NAMES = ("token", "secondToken", "secret", "secondSecret", "verifyToken")
_LISTS = ("signature", "timestamp", "deliveryId", "issuers", "audiences")


def made_here(patch: Document, saved: ShownAuthentication | None = None) -> dict[str, str]:
    """Generates what the form asks for, and tells it by its field: the answer to this form shows it, and after that only
    *Reveal* does. A stand-in for a sender's own secret is not shown."""
    method = patch.get("method") or (saved.method if saved else "")
    provider = patch.get("provider") or (saved.provider if isinstance(saved, WithSignature) else "")
    scheme = patch.get("scheme") or (saved.scheme if isinstance(saved, WithSignature) else None)
    shown = {}
    for name, field in SECRETS.get(method, {}).items():
        if patch.get(name) == GENERATE and (secret := generated(method, provider, scheme)):
            patch[name] = shown[field] = secret
    return shown


def costs(patch: Document, how: ShownAuthentication, is_awaited: bool, form: Form) -> None:
    """Refuses to delete or replace a secret that callers use, unless the user has ticked that this is meant."""
    if how.method == "none" or is_awaited or form.on("understood"):
        return
    main = "token" if how.method == "token" else "secret"
    others = patch.get("method", how.method) != how.method or (
        isinstance(how, WithSignature) and patch.get("provider", how.provider) != how.provider
    )
    if others or main in patch:
        opens = patch.get("method") == "none"
        what = "everybody may call" if opens else "callers with the current one are rejected"
        raise invalid("understood", f"tick that {what}")


def request_of(form: Form) -> Document:
    """The form in the words of the API."""
    match form.get("method"):
        case "token":
            made: Document = {"method": "token", "placement": form.get("placement", "header")}
            for name in ("headerName", "username", "parameterName", "tokenPath"):
                if form.text(name):
                    made[name] = form.text(name)
            if form.text("newSecret") or form.get("was") != "token":
                made["token"] = form.text("newSecret") or GENERATE
            return made
        case "hmac":
            provider = form.text("provider") or "generic"
            made = {"method": "hmac", "provider": provider}
            stays = form.get("was") == f"hmac {provider}"
            # Settings without a field for this sender stay as they are, and another sender begins without them.
            if "publicUrl" in form or not stays:
                made["publicUrl"] = form.given("publicUrl")
            if "toleranceSeconds" in form or not stays:
                made["toleranceSeconds"] = form.number("toleranceSeconds")
            if form.text("verifyToken"):
                made["verifyToken"] = form.text("verifyToken")
            if provider == "generic":
                made["requireTimestampAndDigest"] = form.on("requireTimestampAndDigest")
            if provider == "custom":
                made |= {"scheme": scheme_of(form), "toleranceSeconds": None}  # its scheme says for how long
            else:
                made["scheme"] = None
            if form.text("newSecret") or not stays:
                made["secret"] = form.text("newSecret") or GENERATE
            return made
        case _:
            return {"method": "none"}


_WITHOUT_A_FIELD = (
    "handshake", "timestampRequired", "bodyDigest", "secretClaim", "urlUnescape",
    "certificateFrom", "certificateAddresses", "certificateNames",
)  # fmt: skip
_IN_THE_FORM = tuple(name for name in FIELDS if name not in _WITHOUT_A_FIELD)
_TEXTS = tuple(name for name in _IN_THE_FORM if name not in (*_LISTS, "signedContent", "toleranceSeconds"))


def scheme_of(form: Form) -> Document:
    """A whole scheme: what was emptied goes back to its default, and what the form has no field for stays."""
    scheme: Document = {name: form.given(f"scheme.{name}") for name in _TEXTS}
    # Exactly as written: a blank or a line break at its end is signed too.
    scheme["signedContent"] = form.get("scheme.signedContent", "").replace("\r\n", "\n") or None
    for name in _LISTS:
        scheme[name] = form.listed(f"scheme.{name}") or None
    scheme["toleranceSeconds"] = form.number("scheme.toleranceSeconds")
    others = _others_of(form)
    if "{timestamp}" in str(scheme["signedContent"]):
        # A time that is signed is always required: what was said of one that is not is taken back, which leaving it out does not.
        others["timestampRequired"] = None
    return scheme | others


def _others_of(form: Form) -> Document:
    try:
        others = json.loads(form.get("scheme.others", "{}"))
    except ValueError:
        return {}
    return (
        {name: value for name, value in others.items() if name not in _IN_THE_FORM}
        if isinstance(others, dict)
        else {}
    )


def scheme_context(scheme: Document, others: bool = True) -> PageValues:
    """The context of a scheme's form. ``others``: settings without a field are copied, too."""
    kept = {name: value for name, value in scheme.items() if others and name not in _IN_THE_FORM}
    return {"scheme": _as_fields(scheme), "scheme_others": json.dumps(kept), "shapes": SHAPES}


_SEPARATORS = {"": "", " ": "space", ",": "comma", ";": "semicolon", "=": "equals"}


def _as_fields(scheme: Document) -> dict[str, str]:
    """A scheme as the form shows it: lists with commas, separators by their names."""
    shown = {
        name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in scheme.items()
    }
    for name in ("itemSeparator", "keySeparator"):
        shown[name] = _SEPARATORS.get(str(scheme.get(name) or ""), str(scheme.get(name) or ""))
    return shown
