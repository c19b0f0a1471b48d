"""Nothing of a protected delivery but its noisy rows comes from the images: two of them, byte by byte."""

import os
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from deliveries import SMALL, contents
from fronts import FEATURES, feature_key, feature_layer
from mole.exchange.shards import Encoding, save_encoding
from mole.provider import counting, delivery_maker, local_engine, protector, shard_maker, witnesses
from mole.provider.deliver import deliver


@pytest.fixture
def others(place, tmp_path):
    """As many images with the same labels, and not one of them the same, nor of the same number type."""
    arrays = dict(np.load(place / "data.npz"))
    for name in ("x_train", "x_test"):
        arrays[name] = (257 * (255 - arrays[name].astype(np.uint16))) // 3
    np.savez(tmp_path / "others.npz", **arrays)
    return tmp_path / "others.npz"


@pytest.fixture
def rows_of_nothing(monkeypatch):
    """What chance decides is the same in every run, and rows are noise without any features.

    So two deliveries have the same bytes, unless something besides the features of rows depends on images.
    """
    monkeypatch.setattr(counting, "token_hex", lambda count: "0" * 2 * count)

    def noise_alone(clipped, certificate, noise):
        return certificate.sigma * np.random.default_rng(len(clipped)).normal(size=clipped.shape)

    monkeypatch.setattr(protector, "release", noise_alone)


class PlugPulledError(Exception):
    """In the place of a power cut."""


@pytest.fixture
def deliver_both(place, protect, others, tmp_path, monkeypatch):
    """Deliver different images to the same place one after the other, for every byte of both deliveries."""

    def both(**options):
        found = []
        for number, data in enumerate((place / "data.npz", others)):
            monkeypatch.setenv("MOLE_STATE", str(tmp_path / f"state{number}"))
            out = tmp_path / "out"
            with suppress(PlugPulledError):
                deliver(data, feature_layer(), feature_key(), out, protect=protect, **SMALL, **options)
            found.append(contents(out))
            out.rename(tmp_path / f"out{number}")
        return found

    return both


@pytest.mark.filterwarnings("ignore::mole.errors.MoleWarning")
@pytest.mark.usefixtures("rows_of_nothing")
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "int8"},
        {"dtype": "float16", "layer_dtype": "float16"},
        {"views": 2},
        {"layer_dtype": None},
    ],
    ids=["8 bits", "16 bits", "views", "requests"],
)
def test_not_a_byte_besides_the_noisy_rows_depends_on_the_images(deliver_both, options):
    one, two = deliver_both(**options)
    assert one == two


def wait_for_a_shard(folder):
    end = time.monotonic() + 60
    while not any(folder.rglob("*.parquet")) and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.usefixtures("rows_of_nothing")
def test_nor_does_one_of_an_unfinished_delivery(deliver_both, tmp_path, monkeypatch):
    real, calls = protector.Protector.rows, Counter()

    def rows(self, images, split):
        delivery = os.environ["MOLE_STATE"]
        calls[delivery] += 1
        if calls[delivery] > 2:
            wait_for_a_shard(tmp_path / "out")  # another thread writes it; nothing is left of none
            raise PlugPulledError
        return real(self, images, split)

    monkeypatch.setattr(protector.Protector, "rows", rows)
    monkeypatch.setattr(local_engine, "processors", lambda: 1)
    one, two = deliver_both()
    in_both = set(one) & set(two)  # which shards were finished by then is chance
    assert "unfinished.json" in in_both
    assert {name: one[name] for name in in_both} == {name: two[name] for name in in_both}


def number_types_left(self, split, rows):
    return rows._replace(plain=self._protector.rows(rows.plain, split))


of_the_row = witnesses.WitnessMaker._plain


def witnesses_of_images(self, job, row_id, morphed):
    """A trace of the image, so small that a witness still tells the right key."""
    image = self._maker.read_row(job, row_id)
    return of_the_row(self, job, row_id, morphed) * (1 + 1e-3 * np.abs(image).mean())


def scales_of_images(self, maker):
    images = maker.read(self._plan.jobs[0]).plain
    encoding = Encoding.fit("int8", 5 * images.reshape(len(images), -1)[:, :FEATURES])
    save_encoding(self._store, encoding)
    return encoding


@pytest.mark.usefixtures("rows_of_nothing")
@pytest.mark.parametrize(
    ("where", "name", "leak"),
    [
        (shard_maker.ShardMaker, "_protected", number_types_left),
        (witnesses.WitnessMaker, "_plain", witnesses_of_images),
        (delivery_maker.DeliveryMaker, "_fit", scales_of_images),
    ],
    ids=["number types", "witnesses", "scales"],
)
def test_a_leak_is_found(deliver_both, monkeypatch, where, name, leak):
    """The negative twin: something is made from images besides the rows."""
    monkeypatch.setattr(where, name, leak)
    one, two = deliver_both(dtype="int8")
    assert one != two
