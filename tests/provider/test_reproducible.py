"""The same delivery has the same bytes, in whichever process it is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deliveries import contents, write_npz

PROGRAM = """
import sys
tests, data, out, dtype = sys.argv[1:]
sys.path.insert(0, tests)
from deliveries import make_key, make_layer
from mole.provider.deliver import deliver
deliver(data, make_layer(), make_key(), out, dtype=dtype, rows_per_shard=40)
"""


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_every_file_has_the_same_bytes_in_another_process(tmp_path, dtype):
    data = write_npz(tmp_path / "data.npz")
    made = []
    for seed in ("1", "2"):
        out = tmp_path / f"delivery-{seed}"
        support = Path(__file__).parents[1] / "support"
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(support), str(data), str(out), dtype],
            check=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        made.append(contents(out))
    assert set(made[0]) == set(made[1])
    assert [name for name in made[0] if made[0][name] != made[1][name]] == []
