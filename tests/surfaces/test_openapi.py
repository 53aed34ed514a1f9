"""The API's description is true: a machine reads it, tries everything it promises, and finds nothing."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from beds.client import Client, admin_of
from beds.program import Program, StartProgram
from postern.surfaces.rest import document as document_module


@pytest.fixture(scope="module")
def document(served: Program) -> dict[str, Any]:
    found: dict[str, Any] = Client(served.port).get("openapi.json").json
    return found


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{method} {path}", operation) for path, item in document["paths"].items() for method, operation in item.items()]


def test_every_operation_says_who_may_and_what_may_be_refused(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    for name, operation in operations(document):
        assert operation["summary"] and operation["tags"] and operation["operationId"], name
        assert {"422", "503"} <= operation["responses"].keys(), name
        assert ("401" in operation["responses"]) or operation["x-access-level"] == "none", name
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert set(response["content"]) == {"application/problem+json"}, (name, status)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    references = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            references.update([value["$ref"]] if isinstance(value.get("$ref"), str) else [])
            for one in value.values():
                look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)

    look(document)
    assert {reference.rpartition("/")[2] for reference in references} <= document["components"]["schemas"].keys()
    assert all(reference.startswith("#/components/schemas/") for reference in references)


def test_the_page_to_read_it_on_loads_nothing_from_elsewhere(served: Program) -> None:
    page = Client(served.port).get("/docs")
    assert page.status == 200 and "default-src 'self'" in page.headers["content-security-policy"]
    assert "http://" not in page.text and "https://" not in page.text
    assert Client(served.port).get("/docs/start.js").status == 200
    assert Client(served.port).get("/docs/secret.key").status == 404


def test_a_person_reads_it_in_a_browser(served: Program, page: Page) -> None:
    if not (document_module.VENDOR / "swagger-ui.js").exists():
        pytest.skip("the console's assets have not been fetched: install the project")
    page.goto(f"{served.url}/docs")
    page.get_by_text("List webhooks").wait_for()


def test_a_machine_that_tries_everything_finds_nothing(start_program: StartProgram, tmp_path: Path) -> None:
    served = start_program(POSTERN_ENGINE="none")  # its own: what it tries may also succeed, and change a password
    api = admin_of(served)
    webhook = api.post("webhooks", {"name": "Tried", "authentication": {"method": "none"}}).json
    api.post(urlsplit(webhook["url"]).path, {"tried": True})
    invocation = api.get("invocations").json["items"][0]["id"]
    (tmp_path / "schemathesis.toml").write_text(
        f"""
[parameters]
invocation_id = "{invocation}"

[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422]
positive_data_acceptance.enabled = false  # a name may be reserved, a webhook absent: a schema cannot say so

[[operations]]
include-path = "/api/v1/live"
enabled = false  # it never ends
"""
    )
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/api/v1/openapi.json"]
    options = ["--header", f"Authorization: Bearer {served.admin_key}", "--max-examples", "3", "--phases", "examples,coverage,fuzzing"]
    more = ["--seed", "1", "--request-timeout", "10", "--no-color", "--suppress-health-check", "all", "--workers", "1"]
    run = subprocess.run([*command, *options, *more], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
