"""The README's transcript of both roles runs exactly as printed, in the files of a fresh clone."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from light_passphrases import PROGRAM, lighten
from mole.provider.keys import MorphKey
from warm_start import warm_start

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def clone(tmp_path) -> Path:
    """What a clone has of the examples: what git would take, and nothing that was made there."""
    shutil.copytree(
        ROOT / "examples",
        tmp_path / "examples",
        ignore=lambda folder, names: [name for name in names if not name.endswith((".py", ".ipynb"))],
    )
    return tmp_path


@pytest.mark.skipif(
    not (shutil.which("age-keygen") and shutil.which("ssh-keygen")),
    reason="the transcript makes keys with age and OpenSSH",
)
@pytest.mark.timeout(900)  # twenty-four processes, one after the other: slow where others are at work
def test_the_transcript_of_the_readme(clone, monkeypatch):
    first, second, third = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    with warm_start() as warm:
        programs = warm.stand_ins(before=PROGRAM)
        run(first, clone, programs)
        said = run(second, clone / "examples", programs)
        run(third, clone / "examples", programs)
    place = clone / "examples"
    assert pq.read_table(place / "predictions.parquet").num_rows == 20
    with np.load(place / "recovered.npz") as recovered:
        files = sorted((place / "photos" / "train").glob("*/*.png"))
        originals = np.stack([np.asarray(Image.open(file)) for file in files])
        assert np.array_equal(recovered["x_train"][:, 0], originals)
        assert np.bincount(recovered["y_train"]).tolist() == np.bincount(labels_of(files)).tolist()
    passphrase = (place / "passphrase.txt").read_text().strip()
    lighten(monkeypatch)
    assert MorphKey.load(place / "provider.key", passphrase).core == "whitened"
    assert (place / "audit" / "audit.html").is_file()
    assert "signed by SHA256:" in said
    assert pq.read_table(place / "answers.parquet").num_rows == 20
    for name in ("delivery", "requests", "signed", "protected"):
        assert all(path.suffix == ".age" for path in (place / name).rglob("*") if path.is_file())
    assert not (place / "passphrase.txt").stat().st_mode & 0o077


def test_what_the_transcript_makes_is_not_committed(clone):
    """Keys, passphrases and private images lie where they were made, and git does not see them."""
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    made = [
        *re.findall(r"(?:--out|-o|>|-f) (\S+?)\)?$", "".join(blocks), flags=re.MULTILINE),
        "public.pt",
        "photos/1",
    ]
    assert {"provider.key", "passphrase.txt", "developer.txt", "delivery", "provider"} <= {*made}
    for name in made:
        asked = ["git", "check-ignore", "--quiet", f"examples/{name}"]
        done = subprocess.run(asked, cwd=ROOT, check=False)
        if done.returncode == 128:
            pytest.skip("not a checkout")
        assert done.returncode == 0, name


def labels_of(files: list[Path]) -> list[int]:
    classes = sorted({file.parent.name for file in files})
    return [classes.index(file.parent.name) for file in files]


def run(block: str, workplace: Path, programs: Path) -> str:
    """Run a block of the README as a script, with `mole` and `python` from a folder; what it says."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", block], cwd=workplace, env={**os.environ, "PATH": path},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
