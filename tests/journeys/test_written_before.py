"""Files that an earlier version wrote are opened by this one, and their runs go on. `make written` writes them
(`scripts/written.py`); what a released version wrote stays in `tests/written/`."""

from pathlib import Path

import pytest

from support.client import admin_of
from support.packed import unpack
from support.program import StartProgram, run_postern
from support.waiting import wait_until
from support.wire import exchange
from written import CUT, ENDED, FOLDER, PASSPHRASE, TOKEN, WEBHOOK, WORKFLOW


@pytest.fixture(params=["data.tar.gz", "sealed.backup"])
def data_dir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    data = tmp_path / "data"
    if request.param == "data.tar.gz":
        unpack(FOLDER / request.param, data)
        return data
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    restored = run_postern(
        tmp_path, "restore", str(FOLDER / request.param), "--passphrase", "file:passphrase"
    )
    assert restored.returncode == 0, restored.stderr
    return data


def test_what_was_written_before_is_read_and_goes_on(
    data_dir: Path, tmp_path: Path, start_program: StartProgram
) -> None:
    workflows = tmp_path / "workflows"
    workflows.mkdir()
    (workflows / "weigh.py").write_text(WORKFLOW)
    migrated = run_postern(tmp_path, "migrate")
    assert migrated.returncode == 0, f"{migrated.stderr}\nuntil the first release: make written"
    api = admin_of(
        start_program(POSTERN_WORKFLOWS=str(workflows), POSTERN_LOG="off", POSTERN_HISTORY_DAYS="3650")
    )
    (webhook,) = api.get("webhooks").json["items"]
    for name, value in WEBHOOK.items():
        if name != "authentication":
            found = webhook[name]
            assert found == value or (isinstance(found, dict) and value.items() <= found.items()), name
    cut, ended = (api.get(f"invocations/{one['id']}").json for one in api.get("invocations").json["items"])
    assert (ended["body"], cut["body"]) == (ENDED.decode(), CUT.decode())
    assert ended["deliveries"][0]["fields"] == {"fieldOne": "1001"}

    def ends() -> list[str]:
        return [one["runState"] for one in api.get("invocations").json["items"]]

    wait_until(lambda: ends() == ["completed", "completed"], what=lambda: f"both runs to end: {ends()}")
    call = (api.port, "POST", "/webhook/" + webhook["url"].rpartition("/")[2])
    again = exchange(*call, [("X-Api-Key", TOKEN)], ENDED).json["status"]
    assert again in ("accepted", "duplicate"), "a duplicate on the day on which it was written"
