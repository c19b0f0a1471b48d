"""What a whitened core learns from, and that its key remembers how much."""

import numpy as np
import pyrage
import pytest
from safetensors.numpy import save as save_tensors

import mole
from command import call
from deliveries import make_layer
from images import smooth_images
from mole.errors import KeyFileError
from mole.provider.keys.key_file import read_whitening, write_whitening
from mole.provider.keys.learning import IMAGES_OF_TILES, SAMPLE, SAMPLE_ELEMENTS, sample_of, sample_size
from mole.scheme.layouts import Layout, TilesLayout
from mole.scheme.whitening import Whitening
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation

IDENTITY = pyrage.x25519.Identity.generate()
SHAPE = (1, 8, 8)


@pytest.mark.parametrize(
    ("images", "kappa", "words"),
    [
        (40, 1, "learned from 40 images, shrinkage 0."),
        (128, 1, "learned from 128 images, no shrinkage"),
        (40, 4, "learned from 40 images, no shrinkage"),
        (7, 4, "learned from 7 images, shrinkage 0."),
    ],
)
def test_a_key_remembers_what_it_learnt_from(rng, tmp_path, images, kappa, words):
    sample = smooth_images(rng, images, SHAPE)
    key = mole.MorphKey.generate(SHAPE, kappa=kappa, core="whitened", sample=sample)
    key.save(tmp_path / "w.key", recipients=[str(IDENTITY.to_public())])
    loaded = mole.MorphKey.load(tmp_path / "w.key", identities=[str(IDENTITY)])
    assert str(key.learnt).startswith(words)
    assert str(loaded.learnt) == str(key.learnt)
    assert np.allclose(mole.unmorph(mole.morph(sample, loaded), key), sample, atol=1e-4)
    assert mole.MorphKey.generate(SHAPE).learnt is None


@pytest.mark.parametrize(
    "metadata",
    [None, {"blocks": "9"}, {"blocks": "-9", "shrinkage": "0.5"}, {"blocks": "9", "shrinkage": "7"}],
)
def test_a_whitening_that_does_not_say_opens_as_before(metadata):
    whitening = Whitening(np.eye(3, dtype=np.float32))
    assert write_whitening(whitening) == save_tensors({"whitening": whitening.matrix})
    content = save_tensors({"whitening": whitening.matrix}, metadata=metadata)
    read = read_whitening(content, digest=whitening.digest, name="w")
    assert (read.blocks, read.shrinkage, read.digest) == (None, None, whitening.digest)
    with pytest.raises(KeyFileError, match="not a whitening"):
        read_whitening(content[:40], digest=whitening.digest, name="w")


def test_a_sample_is_spread_over_every_split_of_every_source(tmp_path):
    def save(name: str, **levels: int) -> str:
        splits = {f"x_{split}": np.full((count, 4, 4), count, np.uint8) for split, count in levels.items()}
        np.savez(tmp_path / name, **splits)
        return str(tmp_path / name)

    sources = [open_source(save("own.npz", train=30, test=10)), open_source(save("public.npz", train=20))]
    preparation, told = Preparation((1, 4, 4)), []
    everything = sample_of(sources, preparation, progress=lambda *step: told.append(step))
    levels, counts = np.unique(np.rint(everything[:, 0, 0, 0] * 255), return_counts=True)
    assert dict(zip(levels, counts, strict=True)) == {10: 10, 20: 20, 30: 30}
    assert told == [(done, 60) for done in range(1, 61)]
    some = np.rint(sample_of(sources, preparation, 12)[:, 0, 0, 0] * 255)
    assert dict(zip(*np.unique(some, return_counts=True), strict=True)) == {10: 2, 20: 4, 30: 6}


@pytest.mark.parametrize("side", [8, 32, 64, 224, 512, 2048])
def test_a_sample_never_takes_more_memory_than_there_may_be(side):
    whole, tiles = Layout.of("rows", (3, side, side), 1), TilesLayout.of_side((3, side, side), 8)
    for layout in (whole, tiles):
        assert 1 <= sample_size(layout) <= SAMPLE
        assert sample_size(layout) * layout.elements <= SAMPLE_ELEMENTS
    assert side < 64 or sample_size(tiles) <= IMAGES_OF_TILES
    if side <= 64:  # small images are read as before
        assert sample_size(whole) == SAMPLE
        assert sample_size(tiles) * tiles.blocks >= 2 * tiles.block  # enough to learn without shrinkage


def test_keygen_reads_no_more_than_that(tmp_path, monkeypatch):
    monkeypatch.setattr("mole.provider.keys.learning.SAMPLE_ELEMENTS", 100 * 192)
    np.savez(
        tmp_path / "data.npz", x_train=np.random.default_rng(0).integers(0, 256, (300, 8, 8, 3), np.uint8)
    )
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    place = ["--data", tmp_path / "data.npz", "--layer", tmp_path / "layer.safetensors"]
    done = call("keygen", *place, "--recipient", IDENTITY.to_public(), "--out", "my.key", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    key = mole.MorphKey.load(tmp_path / "my.key", identities=[str(IDENTITY)])
    assert key.learnt.images == 100


def test_progress_is_told_while_a_core_is_made(tmp_path):
    told = []
    key = mole.MorphKey.generate((1, 4, 4), progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]
    key.save(tmp_path / "my.key", recipients=[str(IDENTITY.to_public())])
    again = []
    loaded = mole.MorphKey.load(
        tmp_path / "my.key", identities=[str(IDENTITY)], progress=lambda *step: again.append(step)
    )
    assert again == []
    assert loaded.morphing is loaded.morphing  # made once
    assert again == told
