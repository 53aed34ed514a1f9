"""Plants bugs and looks whether a test notices: the survivors show what nothing asks for.

    python scripts/mutants.py                                 all of core/ and usecases/, which takes hours
    python scripts/mutants.py --sample 200 --seed 7 --slow    as many, the same ones each time
    python scripts/mutants.py core/limits.py                  one file, or a folder

A bug is one operator, constant, condition or statement that is another one. Only the tests that run its line are asked,
those of its topic first, then the fastest. Nothing is written into the sources: each bug is planted while its module is
imported, in processes of its own. Which test runs which line is gathered once and kept in `.mutants/` with what was found,
so that the next run goes on where this one ended; `--fresh` forgets what was found. What no test can notice is listed with
the reason in `mutants.toml`.

First the quick tests are asked, in one process: a bug is to be noticed close to where it is. With `--slow`, what survives
is planted in the programs that the other tests start as well, and one and a half minutes of those that run its line are asked.
A browser is not asked, nor are tests that take minutes.

    python scripts/mutants.py --sample 200 --seed 7 | tee found
    python scripts/mutants.py --named found --slow --tests tests/journeys tests/surfaces/rest/test_export.py

`--named` asks again what one run has printed as survivors. With `--tests` only these files are looked at for lines that they
run: for a few bugs that is minutes, where gathering from every test takes as long as `make test`.
"""

import argparse
import importlib
import json
import os
import random
import signal
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from planted import quick
from planted.bugs import ROOT, SOURCE, Mutant, parsed
from planted.lines import FOLDERS, KEPT, QUICK, SLOW, TRACED, Choice, Coverage
from planted.slow import asked_of_programs


class Equivalents:
    """What no test can notice, by file and change, with the reason. Under `*` stands what holds in every file, without
    the function's name."""

    def __init__(self) -> None:
        self._known = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text())

    def __contains__(self, mutant: Mutant) -> bool:
        anywhere = mutant.change.partition(": ")[2]
        return mutant.change in self._known.get(mutant.file, {}) or anywhere in self._known.get("*", {})


def files(asked: list[str]) -> list[str]:
    known = sorted(
        str(one.relative_to(SOURCE))
        for folder in (TRACED if asked else FOLDERS)
        for one in (SOURCE / folder).rglob("*.py")
    )
    return [
        one
        for one in known
        if not asked or any(one == name or one.startswith(name.rstrip("/") + "/") for name in asked)
    ]


class Results:
    """What was found about each bug, for as long as its file stays as it is."""

    def __init__(self, fresh: bool) -> None:
        self._file = KEPT / "results.json"
        if fresh:
            self._file.unlink(missing_ok=True)
        self._known: dict[str, dict[str, str]] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )

    def of(self, mutant: Mutant, choice: Choice) -> str:
        """By which test it is known to be noticed. One that survived is asked again: there may be a new test."""
        known = self._known.get(self._key(mutant), {}).get(f"{mutant.number} {choice.name}", "")
        return (
            known
            if (ROOT / "tests" / known.partition("::")[0]).is_file() or known in quick.WITHOUT_A_TEST
            else ""
        )

    def keep(self, mutant: Mutant, choice: Choice, by: str) -> None:
        self._known.setdefault(self._key(mutant), {})[f"{mutant.number} {choice.name}"] = by
        KEPT.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self._known, indent=0))

    def _key(self, mutant: Mutant) -> str:
        return f"{mutant.file} {sha256((SOURCE / mutant.file).read_bytes()).hexdigest()[:16]}"


def named(output: Path) -> list[Mutant]:
    """Those that survived, as a run has printed them."""
    places = {
        line.rstrip().partition(" tests  ")[2]
        for line in output.read_text().splitlines()
        if line.startswith("survives ")
    }
    return [
        mutant
        for file in sorted({place.partition(":")[0] for place in places})
        for mutant in parsed(file).mutants
        if _place(mutant) in places
    ]


def found(asked: list[str], sample: int | None, seed: int) -> list[Mutant]:
    mutants = [mutant for file in files(asked) for mutant in parsed(file).mutants]
    if sample and sample < len(mutants):
        chosen = random.Random(seed).sample(range(len(mutants)), sample)
        mutants = [mutants[number] for number in sorted(chosen)]
    return mutants


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "files", nargs="*", help="under src/postern: core/limits.py, usecases/calls; default: all"
    )
    parser.add_argument("--sample", type=int, help="so many of them")
    parser.add_argument("--seed", type=int, default=1, help="another sample")
    parser.add_argument("--named", type=Path, help="those that survived, in a file of what a run has printed")
    parser.add_argument("--slow", action="store_true", help="ask the tests that start programs as well")
    parser.add_argument("--tests", nargs="+", help="with --slow: files or folders of tests; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at once")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.dont_write_bytecode = False
    known, results = Equivalents(), Results(asked.fresh)
    chosen = named(asked.named) if asked.named else found(asked.files, asked.sample, asked.seed)
    mutants = [mutant for mutant in chosen if mutant not in known]
    coverage = Coverage(QUICK).gathered()
    slow = replace(SLOW, files=tuple(asked.tests)) if asked.tests else SLOW
    by_programs = Coverage(slow).gathered() if asked.slow else None
    for name in coverage.modules:
        with suppress(Exception):
            importlib.import_module(name)
    print(f"{len(mutants)} bugs in {len({one.file for one in mutants})} files", flush=True)

    def asked_of(choice: Choice, bugs: list[Mutant], noticed: Callable[[Mutant], str]) -> list[Mutant]:
        """Those that survive."""

        def ask(mutant: Mutant) -> tuple[Mutant, str]:
            # A test that starts programs has noticed it already.
            if choice is QUICK and asked.slow and results.of(mutant, SLOW):
                return mutant, ""
            return mutant, results.of(mutant, choice) or noticed(mutant)

        survivors = []
        with ThreadPoolExecutor(asked.jobs) as pool:
            for mutant, by in pool.map(ask, bugs):
                results.keep(mutant, choice, by)
                place = _place(mutant)
                if not by:
                    survivors.append(mutant)
                    print(f"survives {choice.name} tests  {place}", flush=True)
                elif choice is SLOW:
                    print(f"noticed by {by}  {place}", flush=True)
        print(f"{_share(len(bugs) - len(survivors), len(bugs))} noticed by {choice.name} tests", flush=True)
        return survivors

    quick_tests = quick.QuickTests(coverage)
    survivors = asked_of(QUICK, mutants, quick_tests.noticed)
    if by_programs is not None and survivors:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended, too
        with asked_of_programs(by_programs) as programs:
            survivors = asked_of(SLOW, survivors, programs.noticed)
    _tell(mutants, survivors)
    print(
        f"{_share(len(mutants) - len(survivors), len(mutants))} noticed, {len(chosen) - len(mutants)} equivalent"
    )


def _place(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line}  {mutant.change}"


def _tell(mutants: list[Mutant], survivors: list[Mutant]) -> None:
    """Where most survive."""
    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for mutant in mutants:
        counted[mutant.file][0] += mutant in survivors
        counted[mutant.file][1] += 1
    for file, (survive, of) in sorted(counted.items(), key=lambda one: -one[1][0])[:10]:
        if survive:
            print(f"{survive:4} of {of:4} survive in {file}")


def _share(some: int, whole: int) -> str:
    return f"{some} of {whole} ({some / max(1, whole):.1%})"


if __name__ == "__main__":
    main()
