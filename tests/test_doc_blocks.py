"""Every block of shell commands in the documents is run as it is written, or says why it is not.

Its fence says which: ```sh runs`` in one shell, page by page, in a folder beside a serving program that has its
example, a signed webhook and calls; ``runs in an empty folder`` in one of its own; ``runs beside a sender`` that
lost calls; ``settings`` for settings, which `postern settings` then has to take; ``litestream`` in `tests/journeys/test_litestream.py`; ``not run:`` and why.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from support.client import Client, admin_of
from support.program import Program, clean_environment, run_command, run_postern
from support.shells import postern_in_shells
from support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
KINDS = re.compile(r"runs|runs in an empty folder|runs beside a sender|settings|litestream|not run: .{15,}")
SECRET = "the secret of a signed webhook"


@dataclass(frozen=True)
class Block:
    page: Path
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = re.findall(
        r"^```(?:sh|bash|shell|console) ?(.*)\n((?:.*\n)*?)```$", page.read_text(), re.MULTILINE
    )
    return [Block(page, kind, text) for kind, text in found]


def pages_with(kind: str) -> list[Path]:
    return [page for page in PAGES if any(block.kind.startswith(kind) for block in blocks(page))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    unmarked = [block.text for block in blocks(page) if not KINDS.fullmatch(block.kind)]
    assert unmarked == [], "write ```sh runs, ```sh settings or ```sh not run: and why"
    for block in blocks(page):
        for test in re.findall(r"tests/[\w/]+(?:\.py)?", block.kind):
            assert (ROOT / test).exists(), f"{name_of(page)} names {test}"


@dataclass(frozen=True)
class Stage:
    """A program that serves, and the folder in which its user types."""

    program: Program
    folder: Path
    bin: Path

    def run(self, script: str, folder: Path | None = None, **environment: str) -> str:
        path = os.pathsep.join(map(str, (self.bin, Path(sys.executable).parent, os.environ["PATH"])))
        ran = run_command(
            *("sh", "-eux", "-c", script),
            folder=folder or self.folder,
            environment=clean_environment({"PATH": path, **environment}),
        )
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}\n{self.program.output()[-2000:]}"
        return ran.stdout


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("typing")
    (folder / "workflows").mkdir()
    shutil.copy(ROOT / "src/postern/workflows/example/order_lookup.py", folder / "workflows")
    (folder / "shopify.secret").write_text(SECRET)
    (folder / "new.secret").write_text(f"{SECRET}, the next one")
    settings = {"POSTERN_EXAMPLE": "on", "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1"}
    with Program(folder, settings) as program, postern_in_shells() as bin:
        yield Stage(program, folder, bin)


@dataclass(frozen=True)
class Filled:
    """What stands for the ids in the documents."""

    webhook: str
    url: str
    accepted: str
    rejected: str

    @classmethod
    def by(cls, program: Program) -> "Filled":
        """A signed webhook with a sample, one call that was accepted and one that was not."""
        api = admin_of(program)
        signed = {"method": "hmac", "provider": "shopify", "secret": SECRET}
        webhook = api.post("webhooks", {"name": "Signed", "authentication": signed}).json
        wait_until(lambda: called(program, webhook["url"], "") != 404, what="the webhook to be served")
        api.post(f"webhooks/{webhook['id']}/record-events")
        body = b'{"order": {"number": "1001"}, "email": "ada@example.com"}'
        right = base64.b64encode(hmac.new(SECRET.encode(), body, hashlib.sha256).digest()).decode()
        assert called(program, webhook["url"], right, body) == 200
        assert called(program, webhook["url"], base64.b64encode(bytes(32)).decode(), body) == 401
        calls = api.get(f"invocations?webhookId={webhook['id']}").json["items"]
        accepted = next(one["id"] for one in calls if one["code"] == "accepted")
        rejected = next(one["id"] for one in calls if one["code"] == "signature_mismatch")
        wait_until(
            lambda: api.get(f"invocations/{accepted}").json["status"] == "started",
            what="the call to be started",
        )
        return cls(webhook["id"], webhook["url"], accepted, rejected)

    def into(self, script: str) -> str:
        def line(text: str) -> str:
            call = self.rejected if "signatures test" in text else self.accepted
            text = text.replace("wh_…", self.webhook).replace("inv_…", call)
            return text.replace("http://127.0.0.1:8080/webhook/…", self.url)

        return "\n".join(map(line, script.splitlines())).replace("whsec_…", "whsec_" + "c2VjcmV0" * 4)


def called(program: Program, url: str, signature: str, body: bytes = b"{}") -> int:
    headers = {"Content-Type": "application/json", "X_Shopify_Hmac_Sha256": signature}
    return Client(program.port).ask("POST", "/" + url.split("/", 3)[3], body, **headers).status


@pytest.mark.parametrize("page", pages_with("runs"), ids=name_of)
def test_what_a_page_says_is_run(page: Path, stage: Stage, tmp_path: Path) -> None:
    filled = Filled.by(stage.program)
    script = filled.into("\n".join(block.text for block in blocks(page) if block.kind == "runs"))
    # The program that serves is there already.
    script = re.sub(r"^(pip install|postern serve)\b.*$", "true", script, flags=re.MULTILINE)
    # They end with 1 as long as the call does not verify.
    script = re.sub(
        r"^(postern (?:signatures test|send \S+ --to) .*)$", r"\1 || [ $? = 1 ]", script, flags=re.MULTILINE
    )
    if script:
        stage.run(script.replace("127.0.0.1:8080", f"127.0.0.1:{stage.program.port}"))
    apart = [block.text for block in blocks(page) if block.kind == "runs in an empty folder"]
    if apart:
        made = run_postern(stage.folder, "backup", "today.backup", "--keys", "--replace")
        assert made.returncode == 0, made.stderr
        shutil.copy(stage.folder / "today.backup", tmp_path)
        stage.run("\n".join(apart), tmp_path)


class GitHub(BaseHTTPRequestHandler):
    """Its API. Two of three deliveries failed."""

    url, asked, authorized = "", list[str](), set[str]()

    def do_GET(self) -> None:
        hooks = [{"id": 7, "config": {"url": self.url}}]
        tried = [{"id": id, "guid": f"g{id % 10}", "status_code": status} for id, status in self.tries()]
        self.answer(200, tried if "deliveries" in self.path else hooks)

    def tries(self) -> list[tuple[int, int]]:
        return [*((int(one) + 10, 200) for one in self.asked), (3, 502), (2, 200), (1, 0)]

    def do_POST(self) -> None:
        self.asked.append(self.path.split("/")[-2])
        self.answer(202, {})

    def answer(self, status: int, body: object) -> None:
        self.authorized.add(self.headers["Authorization"])
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize("page", pages_with("runs beside a sender"), ids=name_of)
def test_what_a_page_says_is_run_beside_a_sender_that_lost_calls(page: Path, stage: Stage) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), GitHub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        again = {"token": "an older one", "api": f"http://127.0.0.1:{server.server_port}"}
        signed = {"method": "hmac", "provider": "github", "secret": SECRET}
        document = {"name": "Shop", "authentication": signed, "sendAgain": again}
        webhook = admin_of(stage.program).post("webhooks", document).json
        GitHub.url = webhook["url"]
        text = "\n".join(block.text for block in blocks(page) if block.kind == "runs beside a sender")
        said = stage.run(text.replace("wh_…", webhook["id"]), GITHUB_TOKEN="ghp_0123456789")
        server.shutdown()
    assert "GitHub: 2 would be asked for" in said and "GitHub: 2 asked for" in said
    assert GitHub.asked == ["1", "3"] and GitHub.authorized == {"Bearer ghp_0123456789"}


@pytest.mark.parametrize("page", pages_with("settings"), ids=name_of)
def test_settings_are_written_so_that_a_shell_and_the_program_take_them(page: Path, stage: Stage) -> None:
    for block in blocks(page):
        if block.kind == "settings":
            asked = re.sub(
                r"\b(postern (serve|migrate).*|make run)$", "postern settings", block.text, flags=re.MULTILINE
            )
            asked = asked.replace("/etc/postern/secret-keys", str(stage.folder / "shopify.secret"))
            stage.run(f"set -a\n{asked}\npostern settings --json > settings.json")
