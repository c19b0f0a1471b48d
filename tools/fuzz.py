"""Damage good files of every kind, and see whether anything but a clear refusal comes of it.

    python tools/fuzz.py --cases 20000 --seed 1       # as `make fuzz CASES=20000 SEED=1`
    python tools/fuzz.py --kind parquet --cases 500
    python tools/fuzz.py --replay parquet/1/77        # one case again, here, with its traceback

A case is a kind, a seed and a number, and is the same each time. Workers read the damaged files, with a
limit on memory and on time. A case fails if its worker dies, takes too long or too much, if anything but a
MoleError is raised, or if a command ends in another way than with a sentence. It prints the cases that
failed, and ends with 1 if there are any.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from fuzz_files import make_files
from fuzz_targets import FOLDERS, SAME_FILES, TARGETS
from mole.errors import MoleError

MEMORY = 2 << 30  # bytes over what a worker has when it begins
GROWTH = 1 << 30  # bytes that one case may really fill
SECONDS = 10  # of a processor, which a busy machine may stretch
TOO_LONG = "it took too long"
WAIT = 120  # seconds for the slowest answer
RARE = {"audit": 500}  # one case in so many: it takes seconds, where others take milliseconds


class Case(NamedTuple):
    """A kind of file, a seed, and the number of the case."""

    kind: str
    seed: int
    number: int

    def __str__(self) -> str:
        return f"{self.kind}/{self.seed}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Case":
        """Undo `str`."""
        kind, seed, number = text.split("/")
        return cls(kind, int(seed), int(number))


def run_case(case: Case, good: Path, scratch: Path) -> None:
    """Damage one file of a copy of the good ones, and read it."""
    target, rng = TARGETS[case.kind], random.Random(str(case))  # noqa: S311  (to be repeated)
    folder = scratch / "case"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good / SAME_FILES.get(case.kind, case.kind), folder)
    name = rng.choice(target.files)
    (folder / name).write_bytes(target.damage((folder / name).read_bytes(), rng))
    try:
        target.read(folder)
    except MoleError:
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_good(good: Path, scratch: Path) -> None:
    """Read the good files, which must work; and whatever is loaded at first use is loaded."""
    for kind, target in TARGETS.items():
        if kind not in RARE:
            shutil.copytree(good / SAME_FILES.get(kind, kind), scratch / "case")
            target.read(scratch / "case")
            shutil.rmtree(scratch / "case")


def work(cases: list[Case], good: Path, scratch: Path, report: int) -> None:
    """Run cases one by one, and say before and after each how it goes."""
    limit_memory()
    faulthandler.disable()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process, wherever it is
    for case in cases:
        say(report, "begin", str(case))
        signal.setitimer(signal.ITIMER_PROF, SECONDS * (10 if case.kind in RARE else 1))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            run_case(case, good, scratch)
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            say(
                report,
                "failed",
                f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})",
            )
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > GROWTH:
            say(report, "failed", f"it filled {grown >> 20} MiB")
    say(report, "done", "")


def limit_memory() -> None:
    """So much over what is in use."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, in_use + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def say(report: int, what: str, text: str) -> None:
    """One line to the process that waits."""
    os.write(report, json.dumps([what, text[:400]]).encode() + b"\n")


def watch(cases: list[Case], good: Path, scratch: Path) -> tuple[list[tuple[str, str]], int]:
    """Run cases in a worker; what failed, and how many were begun: it may die before the last."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        with contextlib.suppress(BaseException):
            work(cases, good, scratch, writing)
        os._exit(0)
    os.close(writing)
    failures: list[tuple[str, str]] = []
    begun, current, is_done = 0, "", False
    with os.fdopen(reading, buffering=1) as lines:
        while select.select([lines], [], [], WAIT)[0] and (line := lines.readline()):
            what, text = json.loads(line)
            if what == "begin":
                begun, current = begun + 1, text
            elif what == "failed":
                failures.append((current, text))
            is_done = what == "done"
        if not is_done and not line_waits(lines) and is_alive(worker):
            failures.append((current, f"it did not answer for {WAIT} s"))
            os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        name = signal.Signals(os.WTERMSIG(status)).name
        failures.append((current, TOO_LONG if name == "SIGPROF" else f"it died of {name}"))
    return failures, begun


def line_waits(lines: IO[str]) -> bool:
    """Whether something can be read at once."""
    return bool(select.select([lines], [], [], 0)[0])


def is_alive(process: int) -> bool:
    """Whether a process of ours still runs."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def fuzz(cases: list[Case], good: Path, scratch: Path) -> list[tuple[str, str]]:
    """Run all cases, with a new worker after each that died."""
    failures: list[tuple[str, str]] = []
    while cases:
        found, begun = watch(cases[:500], good, scratch)
        for case, reason in found:
            sys.stdout.write(f"FAILED {case}: {reason}\n")
            sys.stdout.flush()
        failures += found
        cases = cases[max(1, begun) :]
        sys.stderr.write(f"{len(cases)} cases to go\n")
    return failures


def drawn(count: int, seed: int, kinds: list[str]) -> Iterator[Case]:
    """So many cases, of each kind in turn."""
    for number in range(count):
        yield Case(kinds[number % len(kinds)], seed, number // len(kinds))


def main() -> int:
    """Read the arguments, make good files, damage and read them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, help="2000, unless cases are replayed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=tuple(TARGETS))
    parser.add_argument("--replay", action="append", metavar="KIND/SEED/NUMBER")
    arguments = parser.parse_args()
    replayed = [Case.parse(text) for text in arguments.replay or ()]
    count = arguments.cases if arguments.cases is not None else 0 if replayed else 2000
    kinds = arguments.kind or [kind for kind in TARGETS if kind not in RARE]
    cases = [*replayed, *drawn(count, arguments.seed, kinds)]
    if not arguments.kind:
        for kind, share in RARE.items():
            cases += drawn(count // share, arguments.seed, [kind])
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mole-fuzz-") as folder:
        good, scratch = Path(folder) / "good", Path(folder) / "scratch"
        make_files(good, FOLDERS)
        scratch.mkdir()
        read_good(good, scratch)
        if replayed and len(cases) == 1:
            run_case(cases[0], good, scratch)
            return 0
        failures = fuzz(cases, good, scratch)
    minutes = (time.monotonic() - started) / 60
    by_kind = Counter(case.split("/")[0] for case, _ in failures)
    sys.stdout.write(
        f"{len(cases)} cases in {minutes:.1f} minutes, {len(failures)} failed {dict(by_kind)}\n"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
