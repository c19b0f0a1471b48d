"""Two identical `mole deliver` into one folder at once: one delivery, whole, every time.

MOLE_PAIRS=50 tries more pairs.
"""

import os
import subprocess

import pyrage
import pytest

import mole
from command import MOLE
from deliveries import make_key, make_layer, write_npz
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.storage.stores import LocalStore

PAIRS = int(os.environ.get("MOLE_PAIRS", "3"))
IDENTITY = pyrage.x25519.Identity.generate()
FILES = {
    "README.md", "augmented-layer.safetensors", "data/test-00000-of-00001.parquet",
    "data/train-00000-of-00001.parquet", "probes.safetensors",
}  # fmt: skip


def test_pairs_of_processes_make_one_delivery(tmp_path):
    write_npz(tmp_path / "data.npz", train=3000, test=100)
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    make_key().save(tmp_path / "my.key", recipients=[str(IDENTITY.to_public())])
    (tmp_path / "identity.txt").write_text(str(IDENTITY))
    refused = 0
    for number in range(PAIRS):
        out = tmp_path / f"delivery-{number}"
        command = [
            MOLE, "deliver", "data.npz", "--layer", "layer.safetensors", "--key", "my.key",
            "--identity", "identity.txt", "--out", out.name, "--quiet",
        ]  # fmt: skip
        pair = [
            subprocess.Popen(
                command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        ends = [(process.communicate()[1], process.returncode) for process in pair]
        assert ("", 0) in ends, ends
        for said, code in ends:
            if code:
                refused += 1
                assert code == 1
                assert said.startswith(f"mole: {out.name} is being written by process ")
                assert said.count("\n") == 1
        checks = verify(LocalStore(out))
        assert all(check.holds for check in checks), checks
        assert set(mole.Delivery.open(out).manifest.files) == FILES
        assert {path.name for path in out.iterdir() if path.is_file()} == {
            "manifest.json", *(name for name in FILES if "/" not in name)
        }  # fmt: skip
    print(f"{PAIRS} pairs, {refused} were told to wait")


def test_one_that_comes_too_late_finds_the_finished_delivery(tmp_path):
    data, store = write_npz(tmp_path / "data.npz"), LocalStore(tmp_path / "d")
    made = deliver(data, make_layer(), make_key(), store)
    with store.locked():  # the first one has not quite let go
        again = deliver(data, make_layer(), make_key(), store)
        assert again.delivery.manifest == made.delivery.manifest
        with pytest.raises(mole.MoleError, match="is being written by process"):
            deliver(data, make_layer(), make_key(), store, rows_per_shard=7)


def test_a_manifest_lists_neither_itself_nor_the_lock(tmp_path):
    """Even where another version, which knows no lock, finishes the same delivery meanwhile."""
    data = write_npz(tmp_path / "data.npz")
    made = deliver(data, make_layer(), make_key(), tmp_path / "first")
    listed = set(made.delivery.manifest.files)

    class Overtaken(LocalStore):
        def write(self, name, content):
            if name == "README.md":
                super().write("manifest.json", (tmp_path / "first" / "manifest.json").read_bytes())
            super().write(name, content)

    overtaken = deliver(data, make_layer(), make_key(), Overtaken(tmp_path / "second"))
    assert set(overtaken.delivery.manifest.files) == listed
    assert all(check.holds for check in verify(LocalStore(tmp_path / "second")))
