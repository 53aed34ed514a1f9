"""The form of a custom scheme shows a scheme, and gives the same one back."""

from pathlib import Path

import pytest

from postern import presets
from postern.core.signatures.scheme import SignatureScheme
from postern.surfaces.console.views.webhooks import authentication
from postern.surfaces.console.visit import Form

TEMPLATES = Path(authentication.__file__).parents[2] / "templates"
SHOWN = (TEMPLATES / "webhook" / "scheme.html").read_text()
WORLDPAY = {"itemSeparator": ",", "signatureForm": "*/SHA256/{signature}"}
MONDAY = {"algorithm": "jwt_hs256", "audiences": ["https://a.example/hook", "b"]}
FREE = {"signedContent": "{bodyfield:a}\n{bodyfield:b}", "freeValue": "body:b"}


@pytest.mark.parametrize(
    "scheme",
    [
        *(preset.scheme for preset in presets.load().values()),
        *map(SignatureScheme.from_document, (WORLDPAY, MONDAY, FREE)),
    ],
)
def test_what_the_form_shows_is_the_scheme_that_it_gives_back(scheme: SignatureScheme) -> None:
    context = authentication.scheme_context(scheme.to_document())
    shown = {name: value for name, value in context["scheme"].items() if f"'scheme.{name}'" in SHOWN}
    form = Form({f"scheme.{name}": value for name, value in shown.items()})
    form["scheme.others"] = context["scheme_others"]
    asked = {name: value for name, value in authentication.scheme_of(form).items() if value is not None}
    assert SignatureScheme.from_document(asked) == scheme
