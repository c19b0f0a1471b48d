"""docs/large-images.md is true: its commands run as printed."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyrage
import pytest
from PIL import Image

from command import call
from mole.exchange.layer_files import load_first_layer
from photos import write_photos

GUIDE = (Path(__file__).parents[2] / "docs" / "large-images.md").read_text()
NARROW = 'embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic", '


def blocks_of(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.fixture
def place(tmp_path) -> Path:
    """What both have before they begin: photos of other sizes, some of them grey, and a narrow network."""
    write_photos(tmp_path / "photos", side=240, train=15, val=6)
    (tmp_path / "new-photos").mkdir()
    for index, file in enumerate(sorted((tmp_path / "photos" / "val").glob("*/*.png"))):
        with Image.open(file) as image:
            image.convert("L").resize((300, 250)).save(tmp_path / "new-photos" / f"{index}.jpg")
    Image.new("L", (500, 375), 90).save(tmp_path / "photos" / "train" / "rocket" / "grey.jpg")
    (network,) = blocks_of("python")
    assert "ResNetConfig(num_labels" in network
    narrow = network.replace("ResNetConfig(num_labels", f"ResNetConfig({NARROW}num_labels")
    (tmp_path / "networks.py").write_text(narrow)
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "developer.txt").write_text(str(identity))
    (tmp_path / "developer.txt").chmod(0o600)
    (tmp_path / "recipient.txt").write_text(str(identity.to_public()))
    (tmp_path / "passphrase.txt").write_text("a long passphrase of the provider's\n")
    (tmp_path / "passphrase.txt").chmod(0o600)
    return tmp_path


def test_the_steps_run_as_printed(place):
    pytest.importorskip("transformers", reason="needs Hugging Face's transformers")
    recipient = (place / "recipient.txt").read_text()
    said = {}
    for line in "".join(blocks_of("sh")).splitlines():
        program, command, *arguments = shlex.split(line.replace("$(cat recipient.txt)", recipient))
        assert program == "mole"
        done = call(command, *arguments, cwd=place)
        assert done.returncode == 0, done.stderr
        said[command] = done
    assert [*said] == [
        "export-layer",
        "keygen",
        "deliver",
        "verify",
        "train",
        "morph",
        "predict",
        "recover",
    ]
    assert "needs a key with tiles" in said["export-layer"].stderr
    assert "tiles hide images from the eye only" in said["keygen"].stderr
    assert pq.read_table(place / "predictions.parquet").num_rows == 6
    layer = load_first_layer(place / "first-layer.safetensors")
    assert (layer.kernel, layer.stride, layer.output_shape[1:]) == ((7, 7), (2, 2), (112, 112))
    with np.load(place / "recovered.npz") as recovered:
        assert recovered["x_train"].shape == (16, 3, 224, 224)
        expected, other = (
            np.asarray(Image.open(place / "photos" / "val" / "chelsea" / name).resize((224, 224)), int)
            for name in ("015.png", "018.png")
        )
        first = recovered["x_val"][0].transpose(1, 2, 0)
        assert np.abs(first - expected).mean() < 8 < np.abs(first - other).mean()  # what 8 bits leave
    assert all(path.suffix == ".age" for path in (place / "delivery").rglob("*") if path.is_file())
