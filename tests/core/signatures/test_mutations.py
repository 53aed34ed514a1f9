"""Would the vectors notice? Each bug is planted into a copy of the verifier, and the vectors must disagree
with it."""

import compileall
import json
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

import postern

SOURCE = Path(postern.__file__).parent
SIGNATURE = "core/signatures/signature.py"
CONTENT = "core/signatures/signed_content.py"
FRESHNESS = "core/signatures/freshness.py"
ENCODING = "core/signatures/encoding.py"
SELECT = "core/signatures/select.py"
PRESET = "presets/{}.toml"

BUGS = {
    "any signature matches": (
        SIGNATURE,
        "is_main |= hmac.compare_digest(candidate, main)",
        "is_main |= True",
    ),
    "any signature matches the second secret": (
        SIGNATURE,
        "is_second |= hmac.compare_digest(candidate, second)",
        "is_second |= True",
    ),
    "only the first signature is tried": (
        SIGNATURE,
        "for candidate in reading.candidates:",
        "for candidate in reading.candidates[:1]:",
    ),
    "only the last signature is tried": (
        SIGNATURE,
        "for candidate in reading.candidates:",
        "for candidate in reading.candidates[-1:]:",
    ),
    "only the first bytes are compared": (
        SIGNATURE,
        "is_main |= hmac.compare_digest(candidate, main)",
        "is_main |= main.endswith(candidate[1:])",
    ),
    "the second secret is ignored": (
        SIGNATURE,
        "is_second |= hmac.compare_digest(candidate, second)",
        "pass",
    ),
    "the second secret replaces the main one": (
        SIGNATURE,
        "is_main |= hmac.compare_digest(candidate, main)",
        "is_main |= second is None and hmac.compare_digest(candidate, main)",
    ),
    "the timestamp is not checked": (
        SIGNATURE,
        "if rejected is None and reading.signed_at is not None:",
        "if False:",
    ),
    "the first of two timestamps is taken": (SIGNATURE, "if len(found) > 1:", "if False:"),
    "the body's digest is not checked": (
        SIGNATURE,
        "rejected = self._digest_rejected(call) if self._digest else None",
        "rejected = None",
    ),
    "a required timestamp may be missing": (
        SIGNATURE,
        "scheme.timestamp_required or require_timestamp_and_digest",
        "scheme.timestamp_required",
    ),
    "a required digest may be missing": (
        SIGNATURE,
        "bool(scheme.body_digest) and require_timestamp_and_digest",
        "False",
    ),
    "old calls are let in": (FRESHNESS, "if age > tolerance:", "if False:"),
    "calls from the future are let in": (FRESHNESS, "if -age > tolerance:", "if False:"),
    "the tolerance is a second shorter": (FRESHNESS, "if age > tolerance:", "if age >= tolerance - 1:"),
    "the clock is read instead of the time of receipt": (
        FRESHNESS,
        "int(received_at)",
        "int(datetime.now(UTC).timestamp())",
    ),
    "milliseconds are read as seconds": (FRESHNESS, "int(text) / 1000", "int(text) / 1"),
    "the secret is not decoded": (
        ENCODING,
        'if encoding == "base64":\n            text',
        'if encoding == "never":\n            text',
    ),
    "a key in hex is not decoded": (ENCODING, 'elif encoding == "hex":', 'elif encoding == "never":'),
    "the secret's prefix stays": (ENCODING, "text = secret.removeprefix(prefix.encode())", "text = secret"),
    "an empty key is accepted": (ENCODING, 'if not text.strip(b"\\0"):', "if False:"),
    "the body is trimmed": (CONTENT, "return call.body\n", "return call.body.strip()\n"),
    "the body is decoded and encoded again": (
        CONTENT,
        "return call.body\n",
        'return call.body.decode("utf-8", "replace").encode()\n',
    ),
    "the body is trimmed within a template": (
        CONTENT,
        "delivery_id: call.body,",
        "delivery_id: call.body.strip(),",
    ),
    "the public URL is ignored": (CONTENT, "if self._public_url is None:", "if True:"),
    "the query string is dropped": (CONTENT, "url = self._public_url + query", "url = self._public_url"),
    "escapes in the URL stay": (CONTENT, "if self._unescape:", "if False:"),
    "every escape in the URL is decoded": (
        CONTENT,
        "self._unescape.get(match[1].lower(), match[0])",
        "bytes([int(match[1], 16)])",
    ),
    "values run into each other": (CONTENT, 'content = b"\\n".join', 'content = b"".join'),
    "one header may come twice": (CONTENT, "if len({name for name, _ in pairs}) < len(pairs):", "if False:"),
    "an HMAC of nothing is accepted": (
        CONTENT,
        'return Missing(f"no header {in_words(ref)} was sent, so nothing of this call is signed")',
        'return b""',
    ),
    "headers are taken in the order of the wire": (
        SELECT,
        "return sorted(",
        "return list(",
    ),
    "a name's capitals count": (SELECT, 'name.removesuffix("*").lower()', 'name.removesuffix("*")'),
    "Paddle's window is the usual one": (
        PRESET.format("paddle"),
        "toleranceSeconds = 5",
        "toleranceSeconds = 300",
    ),
    "Zendesk's secret is decoded": (
        PRESET.format("zendesk"),
        'encoding = "base64"',
        'encoding = "base64"\nsecretEncoding = "base64"',
    ),
    "the timestamp is not part of Slack's content": (
        PRESET.format("slack"),
        "v0:{timestamp}:{body}",
        "v0::{body}",
    ),
}


UNSPOILT = "nothing is spoilt"

# One interpreter has imported the copy and replayed the vectors; a fork of it for each bug imports anew the file with the bug,
# and whatever imports that, and replays them. To begin anew for each would take most of the time.
REPLAY = """
import ast, importlib, json, os, pathlib, sys

sys.path[0] = sys.argv[1]
replay = importlib.import_module("support.vector_replay")
replay.first_disagreement()
own = {name: one for name, one in sys.modules.items() if name.partition(".")[0] in ("postern", "support")}

def imported(module):
    for one in ast.walk(ast.parse(pathlib.Path(module.__file__).read_text("utf-8"))):
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            assert not one.level, f"{module.__name__} imports by dots"
            yield from (one.module, *(f"{one.module}.{alias.name}" for alias in one.names))

imports = {name: {*imported(module)} for name, module in own.items()}

def import_anew(file):
    name = ".".join(("postern", *pathlib.PurePath(file).with_suffix("").parts))
    spoilt = {name if name in own else name.rpartition(".")[0]}
    while more := {name for name in imports.keys() - spoilt if imports[name] & spoilt}:
        spoilt |= more
    for name in spoilt:
        del sys.modules[name]
        above, _, below = name.rpartition(".")
        vars(own[above]).pop(below, None)
    importlib.invalidate_caches()
    return importlib.import_module("support.vector_replay")

for file, right, wrong in json.load(sys.stdin):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
        continue
    spoilt = pathlib.Path(sys.argv[1], "postern", file)
    source = spoilt.read_text("utf-8")
    spoilt.write_text(source.replace(right, wrong), "utf-8")
    try:
        said = import_anew(file).first_disagreement()
    except Exception as error:
        said = f"broke: {error!r}"
    spoilt.write_text(source, "utf-8")
    print(json.dumps(said), flush=True)
    os._exit(0)
"""


def copy_of_the_verifier(folder: Path) -> Path:
    """And of what it needs, without the rest of the package."""
    for part in ("core", "presets"):
        shutil.copytree(
            SOURCE / part, folder / "postern" / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(SOURCE / "__init__.py", folder / "postern")
    compiled = compileall.compile_dir(folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    assert compiled
    return folder


@pytest.fixture(scope="module")
def disagreements(tmp_path_factory):
    """For each bug the first vector that notices it, None where none does."""
    copy = copy_of_the_verifier(tmp_path_factory.mktemp("spoilt"))
    bugs = {UNSPOILT: (SIGNATURE, "class SignatureCredential:", "class SignatureCredential:"), **BUGS}
    for file, right, wrong in bugs.values():
        times = (copy / "postern" / file).read_text("utf-8").count(right)
        assert times == 1, f"{file} has changed; plant {wrong!r} anew"
    replayed = subprocess.run(
        [sys.executable, "-B", "-c", REPLAY, str(copy)],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        input=json.dumps(list(bugs.values())),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert replayed.returncode == 0, replayed.stderr
    return dict(zip(bugs, map(json.loads, replayed.stdout.splitlines()), strict=True))


def test_the_vectors_agree_with_an_unspoilt_copy(disagreements):
    assert disagreements[UNSPOILT] is None


@pytest.mark.parametrize("bug", BUGS)
def test_the_vectors_notice_that(bug, disagreements):
    differing = disagreements[bug]
    assert differing is not None, f"nobody noticed that {bug}"
    assert not differing.startswith("broke"), f"the copy broke instead of misjudging: {differing}"
