"""The recipes for a server, as far as they can be tried without one: the image's steps run in a folder, the unit and
the Compose files are read and judged."""

import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from postern.settings import SETTINGS
from support.kept import kept
from support.program import Program, run_command
from support.waiting import PATIENCE, free_port, is_listening, wait_until

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = (ROOT / "docs" / "deploy.md").read_text()
UNIT = ROOT / "deploy" / "postern.service"
KNOWN = {one.variable for one in SETTINGS} | {f"{one.variable}_FILE" for one in SETTINGS if one.secret}


def instructions() -> list[tuple[str, str]]:
    """Returns the Dockerfile's instructions: each word in capitals with what follows it, lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word]


def all_of(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


# --- the image -------------------------------------------------------------------------------------------------------


def test_what_the_image_is_built_from_is_pinned() -> None:
    (base,) = [rest.removeprefix("BASE=") for rest in all_of("ARG") if rest.startswith("BASE=")]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)
    assert {rest.split()[0] for rest in all_of("FROM")} == {"${BASE}"}
    for step in all_of("RUN"):
        for install in re.findall(r"pip\S* (?:--python \S+ )?install[^&]*", step):
            assert "--require-hashes" in install or ("--no-deps" in install and "--no-index" in install), (
                install
            )
        assert not re.search(r"\b(curl|wget|apt-get|apt)\b", step), step
    assert all_of("ADD") == []


def test_the_image_runs_without_root_without_a_shell_and_tells_its_health() -> None:
    (user,) = all_of("USER")
    assert user.isdigit() and int(user) > 0, "a number, so that a platform can see that it is not root"
    words = [word for word, _ in instructions()]
    assert words.index("USER") > len(words) - 1 - words[::-1].index("RUN")
    for word in ("ENTRYPOINT", "CMD"):
        (command,) = all_of(word)
        assert isinstance(json.loads(command), list), f"{word} in a shell would keep SIGTERM to itself"
    assert len(all_of("HEALTHCHECK")) == 1


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for step in all_of("COPY"):
        if not step.startswith("--from"):
            for source in step.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored, source


def test_the_steps_of_the_image_make_a_program_that_serves_and_ends(tmp_path: Path) -> None:
    """Each step of the first stage as it is written, with folders below the test's and packages that were fetched before; the
    second stage's settings, health check and command."""
    places = {"/opt/": f"{tmp_path}/opt/", "/src": f"{tmp_path}/src", "/data": f"{tmp_path}/data"}
    places["/workflows"] = f"{tmp_path}/workflows"

    def here(text: str) -> str:
        return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], text)

    source = tmp_path / "src"
    source.mkdir()
    (tmp_path / "workflows").mkdir()
    shutil.copy(ROOT / "src/postern/workflows/example/order_lookup.py", tmp_path / "workflows")
    python = {"PATH": f"{tmp_path}/python:/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "python").symlink_to(
        sys.executable if sys.prefix == sys.base_prefix else _base_python()
    )
    network = {
        name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_", "NODE_", "npm_"))
    }
    network |= {"PIP_FIND_LINKS": str(locked_packages()), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    network["PIP_COMPILE"] = "0"  # for one start: the interpreter compiles what it loads
    settings: dict[str, str] = {}
    stage = 0
    for word, rest in instructions():
        stage += word == "FROM"
        if stage == 1 and word == "ENV":
            python |= dict(re.findall(r"(\w+)=(\S+)", rest))
        if stage == 1 and word == "COPY":
            for name in rest.split()[:-1]:
                place = source / name
                shutil.copytree(ROOT / name, place) if (ROOT / name).is_dir() else shutil.copy(
                    ROOT / name, place
                )
        if stage == 1 and word == "RUN":
            ran = run_command("sh", "-euc", here(rest), folder=source, environment={**network, **python})
            assert ran.returncode == 0, f"{rest}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
        if stage == 2 and word == "ENV":
            settings |= dict(re.findall(r"(POSTERN_\w+)=(\S+)", here(rest)))
    bin = tmp_path / "opt" / "postern" / "bin"
    assert not (bin / "pip").exists()
    port = str(free_port())
    environment = {**settings, "POSTERN_HOST": "127.0.0.1", "POSTERN_PORT": port, "POSTERN_EXAMPLE": "on"}
    command = [str(bin / json.loads(all_of("ENTRYPOINT")[0])[0]), *json.loads(all_of("CMD")[0])]
    with subprocess.Popen(
        command, cwd="/", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as served:
        try:
            # Each health check is an interpreter: none is started before there is somebody to ask.
            wait_until(lambda: is_listening(int(port)), what="the program to listen", every=0.1)
            check = json.loads(all_of("HEALTHCHECK")[0].partition("CMD ")[2])
            asked = [str(bin / check[0]), *check[1:]]
            wait_until(
                lambda: run_command(*asked, environment=environment).returncode == 0,
                what="the health check",
                every=0.3,
            )
            assert (tmp_path / "data" / "postern.db").exists()
            served.terminate()
            assert served.wait(PATIENCE) == 0
        finally:
            served.kill()
    assert run_command(*asked, environment=environment).returncode != 0


def locked_packages() -> Path:
    """Returns the packages that the image's locks name, fetched once for each change of them: reading the index is
    half the work of a build."""
    locks = [ROOT / "requirements-build.lock", ROOT / "requirements.lock"]
    said = b"".join(lock.read_bytes() for lock in locks) + sys.version.encode() + sys.platform.encode()
    command = [_base_python(), "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps", "--dest"]
    named = [part for lock in locks for part in ("--requirement", str(lock))]
    return kept(f"packages-{sha256(said).hexdigest()[:16]}", lambda fresh: [*command, str(fresh), *named])


def _base_python() -> str:
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")


# --- Compose ---------------------------------------------------------------------------------------------------------


def compose(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return read["services"]


def test_the_composed_gateway_has_no_more_than_it_needs() -> None:
    gateway = compose("compose.yaml")["postern"]
    for service in (gateway, compose("compose.postgres.yaml")["migrate"]):
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert gateway["env_file"] == [{"path": ".env", "required": False}], "every setting of .env is passed on"
    assert all(port.startswith("127.0.0.1:") for port in gateway["ports"])
    assert int(gateway["stop_grace_period"].removesuffix("s")) >= 60


def test_the_composed_example_answers_its_own_webhook_alone() -> None:
    gateway = compose("compose.yaml")["postern"]
    assert gateway["environment"] == {"POSTERN_EXAMPLE": "${POSTERN_EXAMPLE:-on}"}
    folder = re.search(r"\$\{WORKFLOWS:-\./(.*?)\}:/workflows:ro", " ".join(gateway["volumes"]))
    assert folder is not None
    files = [file.name for file in (ROOT / folder[1]).glob("[!_]*.py")]
    assert files == ["order_lookup.py"], "test_docs.py sees it answer its own webhook and no other"


def test_on_postgres_nothing_starts_without_its_url() -> None:
    services = compose("compose.postgres.yaml")
    for name in ("postern", "migrate"):
        assert services[name]["environment"]["POSTERN_DATABASE_URL"].startswith("${POSTERN_DATABASE_URL:?")
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert re.fullmatch(r"postgres:\d+\.\d+-\w+", services["postgres"]["image"])


# --- systemd ---------------------------------------------------------------------------------------------------------

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed"
)


@needs_systemd
def test_the_unit_is_tight() -> None:
    judged = run_command("systemd-analyze", "security", "--offline=true", "--threshold=20", UNIT)
    assert judged.returncode == 0, judged.stdout[-300:]


@needs_systemd
def test_the_unit_is_understood(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/postern/bin/postern", "/bin/true"))
    read = run_command("systemd-analyze", "verify", unit)
    assert (read.returncode, read.stderr) == (0, "")


def test_commands_on_the_server_have_the_settings_of_the_unit() -> None:
    unit = dict(re.findall(r"(POSTERN_\w+)=(\S+)", UNIT.read_text().replace("%S", "/var/lib")))
    del unit["POSTERN_LOG"]
    assert unit.keys() <= KNOWN
    credential = re.search(r"LoadCredential=secret-keys:(\S+)", UNIT.read_text())
    assert credential is not None
    unit["POSTERN_SECRET_KEYS_FILE"] = credential[1]
    written = DEPLOY.partition("### Commands on the server")[2].partition("\n## ")[0]
    assert dict(re.findall(r"(POSTERN_\w+)=(\S+)", written)) == unit


def test_the_documented_installation_is_the_unit_s(tmp_path: Path) -> None:
    """The block before the unit: the files that it makes are the ones that the unit reads."""
    block = DEPLOY.partition("## systemd")[2].partition("```\n")[0]
    program = re.search(r"^ExecStart=(\S+)/bin/postern serve$", UNIT.read_text(), re.MULTILINE)
    assert program is not None
    assert f"python3 -m venv {program[1]}\n" in block
    for path in ("/etc/postern/workflows", "/etc/postern/secret-keys"):
        assert path in block and path in UNIT.read_text()
    keys = re.search(r"^(head .*) > /etc/postern/secret-keys$", block, re.MULTILINE)
    assert keys is not None
    made = tmp_path / "secret-keys"
    made.write_text(run_command("sh", "-c", keys[1]).stdout)
    given = {"POSTERN_SECRET_KEYS_FILE": str(made), "POSTERN_ENGINE": "none", "POSTERN_LOG": "json"}
    with Program(tmp_path, given):
        pass
