"""A gateway that is killed while it asks a sender, and a command that asks again."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from support.client import admin_of
from support.program import StartProgram, run_postern

SETTINGS = {"POSTERN_ENGINE": "none", "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1"}


def test_a_killed_gateway_has_noted_what_it_asked_for_and_the_next_command_asks_for_the_rest(
    tmp_path: Path, start_program: StartProgram
) -> None:
    asked: list[int] = []

    class GitHub(BaseHTTPRequestHandler):
        """Its API, with eight failed deliveries."""

        def do_GET(self) -> None:
            delivered = [{"id": 100 + one, "guid": f"g{one}", "status_code": 200} for one in asked]
            failed = [{"id": one, "guid": f"g{one}", "status_code": 502} for one in range(8)]
            self.answer(
                delivered + failed if "deliveries" in self.path else [{"id": 7, "config": {"url": url}}]
            )

        def do_POST(self) -> None:
            asked.append(int(self.path.split("/")[-2]))
            if len(asked) == 3:
                first.process.kill()
            self.answer({})

        def answer(self, body: object) -> None:
            encoded = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: object) -> None: ...

    first = start_program(**SETTINGS)
    folder = first.data_dir.parent
    with ThreadingHTTPServer(("127.0.0.1", 0), GitHub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        api = f"http://127.0.0.1:{server.server_port}"
        signed = {"method": "hmac", "provider": "github", "secret": "0123456789abcdef"}
        again = {"account": "repos/acme/shop", "api": api, "token": "a token"}
        document = {"name": "Shop", "authentication": signed, "sendAgain": again}
        webhook = admin_of(first).post("webhooks", document).json
        url = webhook["url"]
        broken_off = run_postern(folder, "send-again", webhook["id"], "--since", "2h")
        assert broken_off.returncode != 0 and len(asked) == 3
        first.kill()
        same = {"POSTERN_DATA_DIR": str(first.data_dir), "POSTERN_PORT": str(first.port)}
        second = start_program(**SETTINGS, **same)
        (note,) = admin_of(second).get(f"audit?subject={webhook['id']}&limit=1").json["items"]
        assert note["action"] == "sender is asked to send again" and len(note["changes"]["events"]) == 8
        ran = run_postern(folder, "send-again", webhook["id"], "--since", "2h")
        server.shutdown()
    assert ran.returncode == 0 and "GitHub: 5 asked for" in ran.stdout, ran
    assert sorted(asked) == [*range(8)], "each once"
