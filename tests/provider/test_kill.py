"""`mole deliver` killed at random moments goes on where it stood: nothing lost, nothing twice.

MOLE_KILLS=50 kills it more often.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from deliveries import tensors, write_npz
from mole.exchange.verify import verify
from mole.storage.stores import LocalStore

KILLS = int(os.environ.get("MOLE_KILLS", "5"))

PROGRAM = """
import sys
from pathlib import Path
from mole.sources.opening import open_source
from mole.provider.deliver import deliver
from mole.exchange.verify import verify
from mole.storage.stores import LocalStore
tests, data, out = sys.argv[1:]
sys.path.insert(0, tests)
from deliveries import make_key, make_layer
print("ready", flush=True)
options = dict(dtype="int8", rows_per_shard=8)
deliver(open_source(data), make_layer(), make_key(), LocalStore(Path(out)), **options)
"""


def rows(folder: Path) -> dict[str, list]:
    """Every row of a delivery by its id."""
    found: dict[str, list] = {}
    for file in sorted((folder / "data").glob("*.parquet")):
        table = pq.read_table(file)
        values = tensors(table)
        for row_id, value, label in zip(
            table["row_id"].to_pylist(), values, table["label"].to_pylist(), strict=True
        ):
            assert row_id not in found, "a row twice"
            found[row_id] = [value.tobytes(), label]
    return found


def run(data: Path, out: Path, *, kill_after: float | None = None) -> tuple[float, bool]:
    """Deliver in a process of its own; how long it took, and whether it was killed at work."""
    arguments = [str(Path(__file__).parents[1] / "support"), str(data), str(out)]
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        start = time.perf_counter()
        if kill_after is None:
            assert process.wait() == 0
        else:
            time.sleep(kill_after)
            process.kill()
        code = process.wait()
    return time.perf_counter() - start, code == -signal.SIGKILL


def test_a_delivery_survives_many_kills(tmp_path):
    data = write_npz(tmp_path / "data.npz", train=600, test=100)
    undisturbed, disturbed = tmp_path / "undisturbed", [tmp_path / "disturbed-0"]
    duration, _ = run(data, undisturbed)
    rng = random.Random(4)
    for _ in range(KILLS):
        # One that is done before it can be killed makes room for another: a machine may get faster.
        while not run(data, disturbed[-1], kill_after=rng.uniform(0, duration / 8))[1]:
            disturbed.append(tmp_path / f"disturbed-{len(disturbed)}")
    run(data, disturbed[-1])
    assert len(rows(undisturbed)) == 700
    for folder in disturbed:
        assert rows(folder) == rows(undisturbed)
        assert LocalStore(folder).names() == LocalStore(undisturbed).names()
        assert not list(folder.rglob("*.part"))
        assert all(check.holds for check in verify(LocalStore(folder)))
