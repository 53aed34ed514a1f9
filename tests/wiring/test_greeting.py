"""What a start says once, and would say never again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postern.settings import Settings
from postern.wiring import serving
from postern.wiring.serving import serve, serve_with
from support.waiting import free_port


class Ended(Exception):
    """Of whatever ends a start."""


@pytest.mark.parametrize("log", ["text", "json"])
@pytest.mark.parametrize("workers", [1, 2])
async def test_a_start_that_ends_before_it_serves_still_says_the_password_that_it_made(
    workers: int,
    log: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    given = {
        "POSTERN_DATA_DIR": str(tmp_path / "data"),
        "POSTERN_PORT": str(free_port()),
        "POSTERN_ENGINE": "none",
        "POSTERN_LOG": log,
    }
    if workers > 1:
        given["POSTERN_DATABASE_URL"] = request.getfixturevalue("migrated_url")

    def ends(_: Any, listen: Any, *__: Any) -> Any:
        if workers > 1:
            listen().close()
        raise Ended

    monkeypatch.setattr(serving, "serve_http" if workers == 1 else "Workers", ends)
    start: Callable[[], Any] = lambda: (  # noqa: E731
        serve(Settings(given)) if workers == 1 else serve_with(Settings(given), workers)
    )
    with pytest.raises(Ended):
        await start()
    said = capsys.readouterr().out
    assert ("admin_password" if log == "json" else "as admin with the password") in said
    assert "serving on" not in said
    with pytest.raises(Ended):
        await start()
    assert "password" not in capsys.readouterr().out, "it is known by now"
