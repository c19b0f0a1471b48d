"""`mole deliver` killed at random moments goes on where it stood: nothing lost, nothing twice.

MOLE_KILLS=50 kills it more often.
"""

import os
import random
import signal
import time
from pathlib import Path

import pyarrow.parquet as pq

from deliveries import tensors, write_npz
from mole.exchange.verify import verify
from mole.storage.stores import LocalStore
from warm_start import WarmStart, warm_start

KILLS = int(os.environ.get("MOLE_KILLS", "5"))

PROGRAM = """
import sys
from pathlib import Path
from mole.sources.opening import open_source
from mole.provider.deliver import deliver
from mole.exchange.verify import verify
from mole.storage.stores import LocalStore
tests, data, out, ready = sys.argv[1:]
sys.path.insert(0, tests)
from deliveries import make_key, make_layer
Path(ready).touch()
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


def run(warm: WarmStart, data: Path, out: Path, *, kill_after: float | None = None) -> tuple[float, bool]:
    """Deliver in a process of its own; how long it took, and whether it was killed at work."""
    ready = out.with_name("ready")
    ready.unlink(missing_ok=True)
    support = Path(__file__).parents[1] / "support"
    process = warm.begin(PROGRAM, "deliver", support, data, out, ready, cwd=out.parent)
    while process.poll() is None and not ready.exists():
        time.sleep(0.001)
    start = time.perf_counter()
    if kill_after is not None:
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
    code, _, error = process.ended()
    assert code in ((0,) if kill_after is None else (0, -signal.SIGKILL)), error
    return time.perf_counter() - start, code == -signal.SIGKILL


def test_a_delivery_survives_many_kills(tmp_path):
    data = write_npz(tmp_path / "data.npz", train=600, test=100)
    undisturbed, disturbed = tmp_path / "undisturbed", [tmp_path / "disturbed-0"]
    rng = random.Random(4)
    with warm_start() as warm:
        duration, _ = run(warm, data, undisturbed)
        for _ in range(KILLS):
            # One that is done before it can be killed makes room for another: a machine may get faster.
            while not run(warm, data, disturbed[-1], kill_after=rng.uniform(0, duration / 8))[1]:
                disturbed.append(tmp_path / f"disturbed-{len(disturbed)}")
        run(warm, data, disturbed[-1])
    assert len(rows(undisturbed)) == 700
    for folder in disturbed:
        assert rows(folder) == rows(undisturbed)
        assert LocalStore(folder).names() == LocalStore(undisturbed).names()
        assert not list(folder.rglob("*.part"))
        assert all(check.holds for check in verify(LocalStore(folder)))
