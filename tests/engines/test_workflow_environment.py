"""The environment that a workflow, and any program it starts, inherits from the gateway."""

from pathlib import Path

from support.client import PASSWORD, Client, admin_of
from support.program import StartProgram

WORKFLOW = """
import os
from postern.workflows import respond, workflow

@workflow
def tell(event):
    respond(dict(os.environ))
"""
SECRET_KEY = "a key of the tests that encrypts what is stored"


def test_a_workflow_has_none_of_the_gateways_secrets_in_its_environment(
    start_program: StartProgram, tmp_path: Path
) -> None:
    (tmp_path / "tell.py").write_text(WORKFLOW)
    keys = tmp_path / "keys"
    keys.write_text(SECRET_KEY)
    program = start_program(
        POSTERN_WORKFLOWS=str(tmp_path / "tell.py"),
        POSTERN_ADMIN_PASSWORD=PASSWORD,
        POSTERN_DATABASE_URL=f"sqlite:///{tmp_path}/own.db",
        POSTERN_SECRET_KEYS_FILE=str(keys),
        SHOP_API_KEY="what the workflow needs",
    )
    webhook = {"name": "Tell", "authentication": {"method": "none"}, "synchronousResponse": {"enabled": True}}
    url = admin_of(program).post("webhooks", webhook).json["url"]
    reply = Client(program.port).post("/webhook/" + url.rpartition("/")[2], {})
    assert reply.status == 200 and reply.json["SHOP_API_KEY"] == "what the workflow needs"
    assert [name for name in reply.json if name.startswith("POSTERN_")] == []
    for secret in (program.admin_key, PASSWORD, SECRET_KEY, str(keys), "own.db"):
        assert secret not in reply.text
