"""`postern listen`: calls of a gateway arrive at a program on this machine, each once, in order, as they were sent."""

import asyncio
import hmac
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.relay import Relay
from postern.surfaces.cli.develop.new_calls import KeptPlace
from postern.surfaces.cli.develop.presence import Lines, Presence
from postern.surfaces.cli.develop.target import LocalTarget, checked
from postern.surfaces.cli.gateway.source import Away
from postern.surfaces.cli.run import NOT_FOUND, OK, UNAVAILABLE, USAGE
from postern.usecases.listeners.views import HandedCall
from support import client
from support.client import admin_of, made
from support.commands import typed
from support.listener import listening
from support.plain_http import no_certificates_read
from support.program import Program, StartProgram
from support.server import Answer, Asked, serving
from support.waiting import free_port, wait_until

SECRET = "a secret that is long enough"


class LocalProgram:
    """Notes what arrives, and answers 200."""

    url = ""

    def __init__(self) -> None:
        self.heard: list[Asked] = []

    def answer(self, asked: Asked) -> Answer:
        self.heard.append(asked)
        return 200, "", b""

    def ids(self) -> list[str]:
        return [asked.headers["x-postern-invocation"] for asked in self.heard]


@pytest.fixture
def local() -> Iterator[LocalProgram]:
    program = LocalProgram()
    with serving(program.answer) as url:
        program.url = f"{url}/hooks"
        yield program


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("one"), {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off"}) as own:
        yield own


def webhook(gateway: Program, **settings: Any) -> dict[str, Any]:
    return made(gateway, **{"fieldMapping": {"fieldOne": "number"}, **settings})


def call(url: str, body: bytes, **headers: str) -> str:
    return str(client.call(url, body, **headers).json.get("invocationId", ""))


def test_a_call_arrives_as_it_was_sent(gateway: Program, local: LocalProgram) -> None:
    signed = webhook(gateway, authentication={"method": "hmac", "provider": "github", "secret": SECRET})
    body = '{"number":  "é",\n"b": 1}'.encode()
    signature = "sha256=" + hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    first = call(
        signed["url"] + "?a=1&b=%20", body, X_Hub_Signature_256=signature, X_Api_Key="hidden", X_Odd="a  b"
    )
    with listening(gateway, "--to", local.url + "?mine=1", "--last", "1") as mine:
        mine.wait_for(1)
        call(
            signed["url"], b'{"number": 2}', X_Hub_Signature_256=signature
        )  # it is rejected, and rejected calls were not asked for
        right = "sha256=" + hmac.new(SECRET.encode(), b"{}", "sha256").hexdigest()
        third = call(signed["url"], b"{}", X_Hub_Signature_256=right)
        mine.wait_for(2)
        assert mine.stop() == OK
    assert local.ids() == [first, third] == [line["id"] for line in mine.lines]
    method, path, headers, arrived = local.heard[0]
    assert (method, path, arrived) == ("POST", "/hooks?mine=1&a=1&b=%20", body)
    assert headers["x-hub-signature-256"] == signature
    assert (headers["content-type"], headers["x-odd"]) == ("application/json", "a  b")
    assert headers["host"] in local.url
    assert "x-api-key" not in headers
    assert mine.lines[0]["localStatus"] == 200


def test_the_place_of_a_masked_credential_takes_a_token(gateway: Program, local: LocalProgram) -> None:
    orders = webhook(gateway)
    call(orders["url"], b"{}", X_Api_Key="hidden")
    with listening(gateway, "--to", local.url, "--last", "1", "--token", "env:TOKEN") as mine:
        mine.wait_for(1)
    assert local.heard[0].headers["x-api-key"] == "a token of my own"


def test_only_what_was_asked_for_arrives(gateway: Program, local: LocalProgram) -> None:
    one, other = webhook(gateway), webhook(gateway, name="Other")
    call(other["url"], b'{"number": "1"}')
    call(one["url"], b'{"number": "2"}')
    wanted = call(one["url"], b'{"number": "1"}')
    call(one["url"], b"[]")
    with listening(gateway, one["id"], "--to", local.url, "--since", "1h", "--where", "fieldOne=1") as mine:
        mine.wait_for(1)
        later = call(one["url"], b'{"number": "1"}')
        mine.wait_for(2)
    assert local.ids() == [wanted, later]
    nested = call(one["url"], b'{"number": "3", "data": {"items": [{"type": "invoice.paid"}]}}')
    call(one["url"], b'{"number": "4", "data": {"items": [{"type": "invoice.made"}]}}')
    path = ("--where", "data.items[0].type=invoice.paid", "--where", "fieldOne=3")
    with listening(gateway, "--print", "--since", "1h", *path) as printed:
        printed.wait_for(1)
        last = call(one["url"], b'{"number": "3", "data": {"items": [{"type": "invoice.paid"}]}}')
        printed.wait_for(2)
    assert [line["id"] for line in printed.lines] == [nested, last]
    with listening(gateway, one["id"], "--print", "--since", "1h", "--outcome", "rejected") as printed:
        printed.wait_for(1)
    assert (printed.lines[0]["outcome"], printed.lines[0]["request"]["bodyBase64"]) == ("rejected", "W10=")


def test_people_see_each_call(gateway: Program, local: LocalProgram) -> None:
    orders = webhook(gateway)
    call(orders["url"], b'{"number": "\x1b[31m"}'.replace(b"\x1b", b"\\u001b"), X_Odd="a")
    with listening(gateway, "--to", local.url, "--last", "1", json_lines=False) as mine:
        mine.wait_for(1)
        assert mine.stop() == OK
    assert re.search(rf"{orders['id']}  POST  200  \d+ ms  ·\[31m$", mine.lines[0].rstrip("\n")), mine.lines
    wait_until(lambda: mine.trouble[-1:] == ["1 call.\n"], what=lambda: f"the end, not {mine.trouble}")
    with listening(gateway, "--print", "--last", "1", json_lines=False) as printed:
        wait_until(lambda: "x-odd: a\n" in printed.lines, what=lambda: f"the header, not {printed.lines}")


def test_a_local_program_that_is_away_is_reported_or_waited_for(
    gateway: Program, local: LocalProgram
) -> None:
    orders = webhook(gateway)
    port = free_port()
    first = call(orders["url"], b"{}")
    with listening(gateway, "--to", f"http://127.0.0.1:{port}/", "--last", "1") as mine:
        mine.wait_for(1)
    assert (mine.lines[0]["localStatus"], "refused" in mine.lines[0]["error"]) == (None, True)
    with listening(gateway, "--to", f"http://127.0.0.1:{port}/", "--last", "1", "--retry") as patient:
        wait_until(lambda: any("sent again" in line for line in patient.trouble))
        with serving(local.answer, port):
            patient.wait_for(1)
    assert local.ids() == [first]


CALLS = 150
CUTS = 15
RESTARTS = 2


def test_nothing_is_lost_or_shown_twice_while_the_connection_is_cut_and_the_gateway_restarts(
    start_program: StartProgram, local: LocalProgram, tmp_path: Path
) -> None:
    port = str(free_port())
    given = {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off", "POSTERN_PORT": port}
    programs = [start_program(**given)]
    first_one = programs[0]
    # None of them comes too soon after the others.
    busy = webhook(first_one, rateLimit={"callsPerSecond": 1000, "burst": 2000})

    def accepted() -> str:
        heard = client.call(busy["url"])
        assert heard.status == 200, heard.text  # of another one nobody would hear
        return str(heard.json["invocationId"])

    async def story() -> list[str]:
        relay = Relay(first_one.port)
        await relay.open()
        with listening(first_one, "--to", local.url, url=f"http://127.0.0.1:{relay.port}") as mine:
            sent = [await asyncio.to_thread(accepted)]
            while not local.ids():
                sent.append(await asyncio.to_thread(accepted))
                await asyncio.sleep(0.2)
            del sent[: sent.index(local.ids()[0])]  # what came before it listened is none of its own
            for number in range(CALLS):
                if (
                    number % (CALLS // (RESTARTS + 1)) == CALLS // (RESTARTS + 1) - 1
                    and len(programs) <= RESTARTS
                ):
                    await asyncio.to_thread(programs[-1].stop)
                    programs.append(await asyncio.to_thread(lambda: start_program(**given)))
                if number % (CALLS // CUTS) == 0:
                    await relay.cut()
                    await relay.open()
                sent.append(await asyncio.to_thread(accepted))
            # On a busy machine it may be far behind by now: it is silent when nothing more comes, and not when all takes long.
            while (came := len(local.ids())) < len(sent):
                await asyncio.to_thread(
                    wait_until,
                    lambda came=came: len(local.ids()) > came,
                    what=lambda came=came: f"more than {came} of {len(sent)} calls; {mine.trouble}",
                )
            await asyncio.sleep(1)  # for one that would come twice
        await relay.cut()
        return sent

    sent = asyncio.run(story())
    assert local.ids() == sent


def test_the_place_is_kept_from_one_run_to_the_next(
    gateway: Program, local: LocalProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    orders = webhook(gateway)
    call(orders["url"], b"{}")  # before anybody listened
    with listening(gateway, "--to", local.url, "--keep", "mine") as mine:
        first = heard_by(local, orders["url"])
        assert mine.stop() == OK
    second = call(orders["url"], b"{}")  # while nobody does
    with listening(gateway, "--to", local.url, "--keep", "mine") as mine:
        mine.wait_for(1)
        third = call(orders["url"], b"{}")
        mine.wait_for(2)
        assert mine.stop() == OK
    assert local.ids() == [*first, second, third]
    for words, code in (
        (("--keep", "mine", "--last", "3"), USAGE),
        (("--keep", "../mine"), USAGE),
        (("--sender", "stripe"), NOT_FOUND),
    ):
        assert typed(tmp_path, "listen", "--print", *words, to=gateway).exit_code == code
    with pytest.raises(SystemExit) as ended:
        KeptPlace("mine", "https://elsewhere.example")
    assert ended.value.code == USAGE


def heard_by(local: LocalProgram, url: str) -> list[str]:
    """Calls until one arrives: from then on it listens."""
    wait_until(lambda: call(url, b"{}") and bool(local.ids()), what="the first call")
    sent = len(local.ids())
    last = call(url, b"{}")
    wait_until(lambda: local.ids()[-1:] == [last], what=lambda: f"{last} after {sent} calls")
    return local.ids()


def test_a_filtered_call_is_started_by_hand_and_then_again(gateway: Program, tmp_path: Path) -> None:
    rows = [{"of": "n", "is": "greater", "values": [1]}]
    held_back = call(webhook(gateway, conditions=rows)["url"], b'{"n": 1}')
    said = [typed(tmp_path, "replay", held_back, to=gateway).stdout for _ in range(2)]
    assert said[0] == f"{held_back} was filtered. Its first start is queued.\n"
    assert said[1].startswith(f"Replay 2 of {held_back} is queued.")


def test_one_recorded_call_is_sent_to_a_local_program(
    gateway: Program, local: LocalProgram, tmp_path: Path
) -> None:
    orders = webhook(gateway)
    recorded = call(orders["url"], b'{"n":  1}', X_Odd="a")
    ran = typed(tmp_path, "replay", recorded, "--to", local.url, to=gateway)
    assert (ran.exit_code, "was answered 200" in ran.stdout) == (OK, True), ran.output
    ((_, _, headers, body),) = local.heard
    assert (headers["x-postern-invocation"], headers["x-odd"], body) == (recorded, "a", b'{"n":  1}')
    assert (
        len(admin_of(gateway).get(f"invocations/{recorded}").json["deliveries"]) == 1
    )  # nothing was started
    for words, code in (
        ((recorded, "--to", f"http://127.0.0.1:{free_port()}/"), UNAVAILABLE),
        ((recorded, "--to", "localhost"), USAGE),
        (("inv_" + "0" * 32, "--to", local.url), NOT_FOUND),
    ):
        assert typed(tmp_path, "replay", *words, to=gateway).exit_code == code


def test_what_cannot_work_is_one_line_and_a_code(
    gateway: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("пароль")
    for words, code in (
        ((), USAGE),
        (("--print", "--to", "http://localhost:1"), USAGE),
        (("--to", "localhost"), USAGE),
        (("--to", "http://localhost:1", "--token", f"file:{tmp_path / 'token'}"), USAGE),
        (("--print", "--since", "yesterday"), USAGE),
        (("--print", "--outcome", "lost"), USAGE),
        (("--print", "--where", "=1"), USAGE),
        (("--print", "--where", "data[=1"), USAGE),
        (("wh_none", "--print"), NOT_FOUND),
    ):
        ran = typed(tmp_path, "listen", *words, to=gateway)
        assert (ran.exit_code, ran.stderr.count("\n")) == (code, 1), (words, ran.output)
    monkeypatch.setenv("POSTERN_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("POSTERN_API_KEY", gateway.admin_key)
    assert typed(tmp_path, "listen", "--print").exit_code == UNAVAILABLE


def test_a_command_that_ends_says_nothing_of_the_question_it_cuts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with no_certificates_read():
        target = LocalTarget(checked("http://127.0.0.1:9"), None, 1)
    presence = Presence("ada@laptop", target, Lines())

    def cut() -> list[HandedCall]:
        presence.close()
        raise Away("The connection is closed.")

    monkeypatch.setattr(presence, "_asked", cut)
    presence.follow()
    target.close()
    assert capsys.readouterr().err == ""
