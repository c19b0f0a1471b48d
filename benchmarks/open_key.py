"""What a provider's command pays before the first image is morphed: opening the key and making its core.

For each kind of core a key of side 3,072 under a passphrase; every run is a process of its own, which
imports the package, opens the key and morphs ten images. With --before FOLDER, the `src` of an older
version, runs of both versions take turns, so that whatever else the machine does falls on both. Seconds on
the clock and of the processors: on a busy machine the latter say more.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from common import write_result
from mole.provider.keys import MorphKey
from mole.provider.keys.derivation import KeyParameters
from mole.scheme.whitening import Whitening

SHAPE, SIDE = (3, 32, 32), 3072
PASSPHRASE = "a passphrase for measuring"  # noqa: S105  (of a key that is thrown away)
HERE = Path(__file__).parents[1] / "src"

ONE_RUN = """
import json, sys, time
started, worked = time.perf_counter(), time.process_time()
steps = {}
def step(name):
    global started, worked
    now, work = time.perf_counter(), time.process_time()
    steps[name] = [now - started, work - worked]
    started, worked = now, work
import numpy as np
import mole
mole.MorphKey
step("import")
key = mole.MorphKey.load(sys.argv[1], sys.argv[2])
step("open")
images = np.random.default_rng(0).normal(size=(10, 3, 32, 32)).astype(np.float32)
morphed = mole.morph(images, key)
step("core and ten images")
steps["sum"] = [sum(values) for values in zip(*steps.values())]
values = morphed.reshape(10, -1)[:, :50].tolist()
print(json.dumps({"version": mole.__version__, "steps": steps, "morphed": values}))
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of an older version")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 0], help="0: as many as it likes")
    arguments = parser.parse_args()
    versions = {"now": HERE} | ({"before": arguments.before} if arguments.before else {})
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for core in ("orthogonal", "whitened"):
            path = save_key(core, Path(folder))
            for threads in arguments.threads:
                rows.append(
                    {
                        "core": core,
                        "threads": threads or "any",
                        **compare(path, versions, threads, arguments.rounds),
                    }
                )
                write_result("open_key", {"side": SIDE, "rounds": arguments.rounds, "rows": rows})


def save_key(core: str, folder: Path) -> Path:
    """A key of that kind; its whitening is made up: learning one takes a while, and changes nothing."""
    whitening = None
    if core == "whitened":
        noise = np.random.default_rng(0).normal(size=(SIDE, SIDE)) / 200
        whitening = Whitening((np.eye(SIDE) + (noise + noise.T) / 2).astype(np.float32))
    parameters = KeyParameters(SHAPE, 1, core, whitening=None if whitening is None else whitening.digest)
    MorphKey(parameters, bytes(range(32)), whitening).save(folder / f"{core}.key", PASSPHRASE)
    return folder / f"{core}.key"


def compare(path: Path, versions: dict[str, Path], threads: int, rounds: int) -> dict[str, Any]:
    """Medians of every step, for each version, in turns; and how far apart what they morphed is."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in versions}
    for _ in range(rounds):
        for name, source in versions.items():
            runs[name].append(one_run(path, source, threads))
    result: dict[str, Any] = {
        name: {step: spread([run["steps"][step] for run in done]) for step in done[0]["steps"]}
        for name, done in runs.items()
    }
    if "before" in runs:
        result["version_before"] = runs["before"][0]["version"]
        sums = {name: result[name]["sum"] for name in ("before", "now")}
        for what in ("seconds", "processor_seconds"):
            result[f"{what}_before_over_now"] = round(sums["before"][what] / sums["now"][what], 2)
        morphed = [np.array(runs[name][0]["morphed"]) for name in ("before", "now")]
        result["largest_difference"] = float(np.abs(morphed[0] - morphed[1]).max())
    return result


def one_run(path: Path, source: Path, threads: int) -> dict[str, Any]:
    """One process of one version."""
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    started = time.perf_counter()
    command = [sys.executable, "-c", ONE_RUN, str(path), PASSPHRASE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    print(source, threads or "any", f"{time.perf_counter() - started:.1f} s", file=sys.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def spread(measured: list[list[float]]) -> dict[str, float]:
    """Medians on the clock and of the processors."""
    clock, processors = zip(*measured, strict=True)
    return {
        "seconds": round(statistics.median(clock), 3),
        "processor_seconds": round(statistics.median(processors), 3),
    }


if __name__ == "__main__":
    main()
