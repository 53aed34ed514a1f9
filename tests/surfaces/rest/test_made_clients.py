"""The API's description serves the usual makers of clients: what they make of it works with the program."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from support.client import Client
from support.program import Program, run_command

ROOT = Path(__file__).resolve().parents[3]
MODULES = ROOT / ".tools" / "npm" / "node_modules"

PYTHON = """
import sys

from made import AuthenticatedClient
from made.api.history import list_invocations
from made.api.webhooks import change_webhook, create_webhook, delete_webhook, list_webhooks, show_webhook
from made.models import Generate, Problem, TokenAuthentication, WebhookPatch, WebhookRequest

asked = {"client": AuthenticatedClient(sys.argv[1], sys.argv[2])}
token = TokenAuthentication(method="token", token=Generate(generate=True))
made = create_webhook.sync(**asked, body=WebhookRequest(name="Made", authentication=token))
assert made.authentication.token_set and made.authentication.method == "token", made
changed = change_webhook.sync(made.id, **asked, body=WebhookPatch(name="Changed"), if_match=f'"{made.version}"')
assert (changed.name, show_webhook.sync(made.id, **asked)) == ("Changed", changed), changed
assert list_webhooks.sync(**asked, search="Changed").items == [changed]
assert list_invocations.sync(**asked, webhook_id=made.id).items == []
refused = create_webhook.sync(**asked, body=WebhookRequest(name="", authentication=token))
assert isinstance(refused, Problem) and [one.field for one in refused.errors] == ["name"], refused
assert delete_webhook.sync_detailed(made.id, **asked).status_code == 204
"""

TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./made.js";
declare const process: { argv: string[] };

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const expect = (seen: unknown, wanted: unknown) => {
  if (JSON.stringify(seen) !== JSON.stringify(wanted)) throw new Error(JSON.stringify({ seen, wanted }));
};
const authentication = { method: "token" as const, token: { generate: true as const } };
const { data: made } = await client.POST("/api/v1/webhooks", { body: { name: "Made", authentication } });
if (made === undefined) throw new Error("nothing was made");
const path = { webhook_id: made.id };
const { data: changed } = await client.PATCH("/api/v1/webhooks/{webhook_id}", {
  params: { path, header: { "If-Match": `"${made.version}"` } }, body: { name: "Changed" },
});
expect(changed?.name, "Changed");
expect((await client.GET("/api/v1/webhooks/{webhook_id}", { params: { path } })).data, changed);
expect((await client.GET("/api/v1/webhooks", { params: { query: { search: "Changed" } } })).data?.items.length, 1);
const { error } = await client.POST("/api/v1/webhooks", { body: { name: "", authentication } });
expect(error?.errors?.map((one) => one.field), ["name"]);
expect((await client.DELETE("/api/v1/webhooks/{webhook_id}", { params: { path } })).response.status, 204);
"""
STRICT = ("--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck")


def run(folder: Path, *command: str | Path) -> None:
    ran = run_command(*command, folder=folder, environment={**os.environ, "NO_PROXY": "127.0.0.1"})
    assert ran.returncode == 0, ran.stdout + ran.stderr


def described(served: Program, folder: Path) -> None:
    (folder / "openapi.json").write_text(json.dumps(Client(served.port).get("openapi.json").json))


def test_the_usual_client_in_python(served: Program, tmp_path: Path) -> None:
    described(served, tmp_path)
    (tmp_path / "config.yaml").write_text("post_hooks: []")  # it need not be formatted
    make = (
        "generate --path openapi.json --meta none --output-path made --config config.yaml --fail-on-warning"
    )
    run(tmp_path, sys.executable, "-m", "openapi_python_client", *make.split())
    (tmp_path / "use.py").write_text(PYTHON)
    run(tmp_path, sys.executable, "use.py", served.url, served.admin_key)


@pytest.mark.skipif(not MODULES.exists(), reason="there was no npm when the tests were set up")
def test_the_usual_client_in_typescript(served: Program, tmp_path: Path) -> None:
    described(served, tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "use.ts").write_text(TYPESCRIPT)
    binaries = MODULES / ".bin"
    make = "openapi.json --default-non-nullable=false -o made.d.ts"
    run(tmp_path, binaries / "openapi-typescript", *make.split())
    run(tmp_path, binaries / "tsc", *STRICT, "use.ts")
    run(tmp_path, shutil.which("node") or "node", "use.js", served.url, served.admin_key)
