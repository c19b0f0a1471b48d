"""`mole keygen` for tiles: what it says of sizes and orders, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import mole
from command import call, files_in, right
from secrets_kept import DEVELOPER, RECIPIENT

KEYGEN = ["keygen", "--recipient", RECIPIENT, "--out", "my.key"]


def patches(folder: Path, **options: object) -> list[str]:
    """A first layer in a file: patches of 4x4 on 1x12x12."""
    weight = np.random.default_rng(0).normal(size=(8, 1, 4, 4)).astype(np.float32)
    given = {"input_shape": (1, 12, 12), "stride": 4} | options
    mole.save(mole.FirstLayer.conv(weight, None, **given), folder / "layer.safetensors")
    return ["--layer", "layer.safetensors"]


def said(*arguments: object, cwd: Path) -> str:
    done = call(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return " ".join((done.stdout + done.stderr).split())


def refused(*arguments: object, cwd: Path) -> str:
    """The one line of a refusal, which leaves nothing behind."""
    before = files_in(cwd)
    done = call(*arguments, cwd=cwd)
    assert done.returncode != 0
    assert files_in(cwd) == before
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_shuffled_tiles_say_what_they_are_for(tmp_path):
    layer = patches(tmp_path)
    words = said(*KEYGEN, *layer, "--tile", 4, "--shuffle-tiles", cwd=tmp_path)
    assert "position embeddings that were trained elsewhere do not help" in words
    (tmp_path / "identity.txt").write_text(str(DEVELOPER))
    facts = right("info", "my.key", "--identity", "identity.txt", cwd=tmp_path)
    assert (facts["layout"], facts["tile"], facts["kappa"]) == ("shuffled-tiles", 4, 9)


def test_tiles_that_fill_the_images_say_nothing_of_zeros_or_orders(tmp_path):
    words = said(*KEYGEN, *patches(tmp_path), "--tile", 4, cwd=tmp_path)
    assert "do not fill" not in words
    assert "secret order" not in words
    assert "tiles hide images from the eye only" in words


def test_zeros_that_are_needed_are_told_of(tmp_path):
    layer = patches(tmp_path)
    words = said(*KEYGEN, *layer, "--tile", 8, cwd=tmp_path)
    assert "tiles of 8 do not fill 1x12x12 images: the key is for 1x16x16" in words
    facts = right(*KEYGEN[:-1], "other.key", *layer, "--tile", 8, cwd=tmp_path)
    assert facts["input shape"] == [1, 16, 16]


@pytest.mark.parametrize(
    ("options", "layer", "words"),
    [(["--shuffle-tiles"], {}, "--shuffle-tiles needs the side of the tiles: add --tile"),
     (["--tile", 8, "--shuffle-tiles"], {}, "cannot be cut into tiles of side 8: use 2, 3, 4"),
     (["--tile", 4, "--shuffle-tiles"], {"padding": 4}, "look beyond a tile of side 4"),
     (["--tile", 4, "--shuffle-tiles"], {"stride": 2}, "use tiles that are not shuffled"),
     (["--tile", 16], {}, "a 1x12x12 sample cannot be cut into tiles of side 16"),
     (["--tile", 6], {}, "stride 4x4 does not divide tiles of side 6")],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(tmp_path, options, layer, words):
    given = patches(tmp_path, **layer)
    assert words in refused(*KEYGEN, *given, *options, cwd=tmp_path)
