"""``python -m bench``: the accepted call's whole path, beside the same server answering a constant and beside
a peer."""

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from bench.contestants import Contestant, constant, gateway, has_peer, nginx, peer
from bench.load import CONNECTIONS, DELIVERY, Measured, load, with_what
from bench.rooms import keep

OTHER_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "*/*",
    "User-Agent": "sender/1.0",
    "X-Request-Source": "shop-1",
}
BODY = json.dumps({"id": 1001, "customer": {"email": "ada@example.com"}, "note": "x" * 1130}).encode()

PROTECTED = ("duplicateProtection.enabled=true", f"duplicateProtection.key=header:{DELIVERY}")

Line = tuple[str, Measured, float, float, float]


def measure(make: Callable[[Path], AbstractContextManager[Contestant]], seconds: float) -> Line:
    with tempfile.TemporaryDirectory() as folder, make(Path(folder) / "it") as contestant:
        headers = {**OTHER_HEADERS, **contestant.headers}
        at_rest = contestant.resident_megabytes()
        load(contestant.url, headers, BODY, min(1.0, seconds))
        before = contestant.cpu_seconds()
        measured = load(contestant.url, headers, BODY, seconds)
        cpu = (contestant.cpu_seconds() - before) / max(measured.calls, 1) * 1e6
        return contestant.name, measured, cpu, at_rest, contestant.resident_megabytes()


def table(lines: list[Line]) -> str:
    yardsticks = [line[1].rate for line in lines if line[0].startswith("constant")]
    rows = [
        "| | calls/s | of the constants | p50 ms | p99 ms | CPU per call µs | MB at rest | MB after |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, measured, cpu, at_rest, after in lines:
        failed = f" ({measured.failed} FAILED)" if measured.failed else ""
        rows.append(
            f"| {name}{failed} | {measured.rate:,.0f} | {' / '.join(f'{measured.rate / one:.2f}' for one in yardsticks)} | {measured.p50:.1f} | {measured.p99:.1f} "
            f"| {cpu:.0f} | {at_rest:.0f} | {after:.0f} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each one is measured")
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often; in turn, so that a busy moment hits everybody"
    )
    asked = parser.parse_args()
    contestants: list[Callable[[Path], AbstractContextManager[Contestant]]] = [
        *([nginx] if shutil.which("nginx") else []),
        partial(constant, path="/webhook/constant"),
        partial(constant, path="/"),
        partial(gateway, engine="none"),
        partial(gateway, engine="none", name="gateway, every key new", settings_of_the_webhook=PROTECTED),
        partial(gateway, engine="embedded"),
    ]
    if has_peer():
        contestants.append(peer)
    else:
        print("!!! THE PEER IS MISSING: install Debian's `webhook` to have it compared.\n")
    sections: list[str] = []
    for _ in range(asked.rounds):
        lines = [measure(make, asked.seconds) for make in contestants]
        parts = [table(lines)]
        by_name = {name: measured for name, measured, *_ in lines}
        ours, theirs = by_name["gateway, engine none"], by_name.get("Debian's webhook, /bin/true")
        if theirs is not None and theirs.failed:
            parts.append("The peer failed some calls: no ratio to it.")
        elif theirs is not None:
            parts.append(
                f"The gateway, everything on disk before the answer, takes {ours.rate / theirs.rate:.1f} times the peer's calls."
            )
        sections += parts
    how = f"{CONNECTIONS} connections, {len(BODY):,} bytes of JSON, {asked.seconds:g} s each, loaded by {with_what()} on a core of its own"
    keep("Accepted calls", f"{how}. Trust the ratios.", "\n\n".join(sections))


if __name__ == "__main__":
    main()
