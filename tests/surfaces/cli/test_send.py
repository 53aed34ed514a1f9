"""`postern send`: calls as their sender would make them, over a gateway or made by the command itself."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from postern.surfaces.cli.run import CONFLICT, FAILED, NOT_FOUND, OK, UNAVAILABLE, USAGE
from support.client import admin_of, made, with_level
from support.commands import typed
from support.plain_http import no_certificates_read
from support.program import Program, StartProgram
from support.server import serving
from support.waiting import free_port

SECRET = "a secret that is long enough"


@pytest.fixture
def gateway(start_program: StartProgram) -> Program:
    return start_program(POSTERN_ENGINE="none", POSTERN_LOG="off")


def webhook(gateway: Program, provider: str, **more: Any) -> dict[str, Any]:
    how = {"method": "hmac", "provider": provider, "secret": SECRET}
    return made(gateway, name=provider.title(), authentication=how, **more)


def test_calls_go_the_whole_way(gateway: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def send(*words: str, to: Program | None = gateway, **environment: str) -> Result:
        return typed(tmp_path, "send", *words, to=to, **environment)

    shop = webhook(gateway, "stripe", fieldMapping={"fieldOne": "data.object.id"})
    ran = send("stripe", "--event", "invoice.payment_failed", "--set", "data.object.id=in_7", "--json")
    assert ran.exit_code == OK, ran.output
    (call,) = json.loads(ran.stdout)["calls"]
    recorded = admin_of(gateway).get(f"invocations/{call['invocationId']}").json
    assert recorded["status"] == "accepted" and recorded["deliveries"][0]["fields"]["fieldOne"] == "in_7"
    sent = dict(recorded["headers"])
    assert sent["user-agent"].startswith("Stripe/1.0")
    assert sent["stripe-signature"] == "***" and "stripe-signature" not in ran.stdout.lower()

    for wrong, code in (
        *(("secret", "signature_mismatch"), ("body", "signature_mismatch")),
        *(("missing", "signature_missing"), ("stale", "timestamp_expired")),
    ):
        ran = send(shop["id"], "--wrong", wrong)
        assert (ran.exit_code, "401" in ran.stdout, code in ran.stdout) == (OK, True, True), ran.output

    ran = send("stripe", "--count", "30", "--rate", "100")
    assert (ran.exit_code, ran.stdout.splitlines()[0]) == (OK, "30  200  accepted")
    assert "checkout.session.completed" in send(shop["id"], "--list").stdout

    body = tmp_path / "body.json"
    body.write_bytes('{"id": "evt_{unique}", "é": 1}'.encode())
    assert send("stripe", "--body", str(body)).exit_code == OK
    body.write_text("[1]")
    ran = send("stripe", "--body", str(body))
    assert (ran.exit_code, "payload_not_an_object" in ran.stdout) == (FAILED, True)

    monkeypatch.setenv("SECRET", SECRET)
    with no_certificates_read():
        ran = send("stripe", "--to", shop["url"], "--secret", "env:SECRET")
    assert (ran.exit_code, '"accepted"' in ran.stdout) == (OK, True), ran.output
    plain = webhook(gateway, "recharge")
    assert send("recharge", "--to", plain["url"], "--secret", "env:SECRET").exit_code == OK
    (one,) = admin_of(gateway).get(f"invocations?webhookId={plain['id']}").json["items"]
    recorded = admin_of(gateway).get(f"invocations/{one['id']}").json
    assert ["user-agent", "Postern"] in recorded["headers"]
    ran = send(shop["id"], "--to", shop["url"], "--secret", "env:SECRET", "--wrong", "stale")
    assert (ran.exit_code, "timestamp_expired" in ran.stdout) == (OK, True), ran.output

    webhook(gateway, "stripe")
    webhook(gateway, "github")
    body.write_bytes(b"0" * 3_000_000)
    gone = f"http://127.0.0.1:{free_port()}/"
    for words, status in (
        (("acme",), USAGE),
        (("slack",), NOT_FOUND),
        (("wh_none",), NOT_FOUND),
        (("stripe",), CONFLICT),
        (("github", "--event", "nothing"), USAGE),
        (("github", "--wrong", "everything"), USAGE),
        (("github", "--wrong", "stale"), CONFLICT),
        (("github", "--set", "a"), USAGE),
        (("github", "--body", "/nowhere"), USAGE),
        (("github", "--body", str(body)), USAGE),
        (("github", "--secret", "env:SECRET"), USAGE),
        (("github", "--to", gone), USAGE),
        (("github", "--to", "localhost", "--secret", "env:SECRET"), USAGE),
        (("github", "--to", gone, "--secret", "env:SECRET"), UNAVAILABLE),
        (("standardwebhooks", "--to", gone, "--secret", "env:SECRET"), USAGE),
    ):
        ran = send(*words)
        assert (ran.exit_code, ran.stdout) == (status, ""), (words, ran.output)
        assert 1 <= ran.stderr.count("\n") <= 2, (words, ran.stderr)

    reader = with_level(gateway, "read")
    refused = reader.post(f"webhooks/{shop['id']}/test-calls", {})
    assert (refused.status, refused.json["code"]) == (403, "access_denied")
    assert reader.get(f"webhooks/{shop['id']}/test-calls").status == 200


def test_the_events_of_a_sender_are_known_without_a_gateway(tmp_path: Path) -> None:
    for words in (("stripe", "--list"), ("stripe", "--list", "--to", "http://localhost:1")):
        ran = typed(tmp_path, "send", *words)
        assert (ran.exit_code, "invoice.payment_failed" in ran.stdout) == (OK, True), ran.output
    assert list(tmp_path.iterdir()) == []
    assert typed(tmp_path, "send", "strip", "--list").exit_code == USAGE


def test_one_of_many_decides_how_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    heard = iter([200, 500] * 2)
    with serving(lambda _: (next(heard), "", b"")) as url:
        for wrong in ((), ("--wrong", "secret")):
            words = ("send", "stripe", "--to", url, "--secret", "env:SECRET", "--count", "2", *wrong)
            ran = typed(tmp_path, *words)
            assert (ran.exit_code, "1  200" in ran.stdout, "1  500" in ran.stdout) == (FAILED, True, True)


def test_a_gateway_that_does_not_serve_is_reported(tmp_path: Path) -> None:
    made = typed(tmp_path, "webhooks", "create", "Orders", "--auth", "none", "--json")
    environment = {"POSTERN_BASE_URL": f"http://127.0.0.1:{free_port()}"}
    ran = typed(tmp_path, "send", json.loads(made.stdout)["id"], **environment)
    assert (ran.exit_code, "cannot be called from here" in ran.stderr) == (UNAVAILABLE, True), ran.output
