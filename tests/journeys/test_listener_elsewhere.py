"""Two gateways on one Postgres: a laptop that is connected to one of them answers callers that wait at the other."""

import subprocess
import sys
from pathlib import Path

from journeys.cluster import ask, counting_engine, make_webhook
from journeys.test_two_processes import start_pair
from support.program import StartProgram, clean_environment
from support.waiting import PATIENCE, wait_until

LAPTOP = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b'{"from": 77}')
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def test_a_caller_at_one_gateway_hears_the_laptop_that_asks_the_other(
    start_program: StartProgram, migrated_url: str, tmp_path: Path
) -> None:
    with counting_engine() as engine:
        first, second = start_pair(start_program, tmp_path, migrated_url, engine)
        webhook, path = make_webhook(first, synchronousResponse={"enabled": True, "timeoutSeconds": 3})
        local = subprocess.Popen([sys.executable, "-c", LAPTOP], stdout=subprocess.PIPE, text=True)
        assert local.stdout is not None
        url = f"http://127.0.0.1:{local.stdout.readline().strip()}/"
        environment = clean_environment({"POSTERN_URL": first.url, "POSTERN_API_KEY": first.admin_key})
        command = subprocess.Popen(
            [sys.executable, "-m", "postern", "listen", webhook, "--to", url, "--answer", "--name", "laptop"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for one in (first, second):
                wait_until(
                    lambda one=one: (
                        [found["name"] for found in ask(one, "GET", "/api/v1/listeners")[1]["items"]]
                        == ["laptop"]
                    ),
                    what="the listener to be known to both",
                )
            # Within a second the other one knows who answers; until then its calls are the engine's.
            wait_until(lambda: ask(second, "POST", path, {})[0] == 201, what="the laptop's answer")
            before = len(engine.triggers)
            for one in (first, second) * 3:
                assert ask(one, "POST", path, {}) == (201, {"from": 77})
            assert len(engine.triggers) == before

            # A second one at the other gateway hears who has it.
            taken = subprocess.run(
                [sys.executable, "-m", "postern", "listen", webhook, "--to", url, "--answer"],
                env={**environment, "POSTERN_URL": second.url, "POSTERN_API_KEY": second.admin_key},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            assert (taken.returncode, "laptop" in taken.stderr) == (4, True), taken.stderr

            # The gateway that the laptop asks dies; the other one notices that nobody is there any more.
            first.kill()
            wait_until(
                lambda: ask(second, "GET", "/api/v1/listeners")[1]["items"] == [], what="the lease to run out"
            )
            engine.answers.set()
            wait_until(
                lambda: ask(second, "POST", path, {})[0] != 201 and len(engine.triggers) > before,
                what="the engine's turn",
            )
        finally:
            for process in (command, local):
                process.kill()
                process.wait()
            local.stdout.close()
