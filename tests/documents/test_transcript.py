"""The README's transcript of both roles runs exactly as printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

README = (Path(__file__).parents[2] / "README.md").read_text()

NETWORK = """
import torch

def small():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(128, 2),
    )
"""


@pytest.fixture
def workplace(tmp_path, rng) -> Path:
    """What the transcript says that the two roles have."""
    (tmp_path / "network.py").write_text(NETWORK)
    names: dict[str, object] = {}
    exec(NETWORK, names)
    torch.save(names["small"]().state_dict(), tmp_path / "public.pt")
    (tmp_path / "passphrase.txt").write_text("correct horse battery staple\n")
    for folder, count in (("photos/train", 20), ("photos/test", 5), ("new-photos", 3)):
        for name in ("cat", "dog"):
            (tmp_path / folder / name).mkdir(parents=True)
            for index in range(count):
                pixels = rng.integers(0, 256, (40, 36, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / folder / name / f"{index}.jpg")
    return tmp_path


@pytest.mark.skipif(
    not (shutil.which("age-keygen") and shutil.which("ssh-keygen")),
    reason="the transcript makes keys with age and OpenSSH",
)
def test_the_transcript_of_the_readme(workplace):
    first, second = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    run(first, workplace)
    assert pq.read_table(workplace / "predictions.parquet").num_rows == 6
    with np.load(workplace / "recovered.npz") as recovered:
        assert recovered["x_train"].shape == (40, 3, 32, 32)
        assert recovered["y_train"].tolist() == [0] * 20 + [1] * 20
    assert "signed by SHA256:" in run(second, workplace)
    for name in ("delivery", "requests", "signed"):
        assert all(path.suffix == ".age" for path in (workplace / name).rglob("*") if path.is_file())


def run(block: str, workplace: Path) -> str:
    """Run a block of the README as a script; what it says."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", block], cwd=workplace, env={**os.environ, "PATH": path},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
