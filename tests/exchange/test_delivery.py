"""An opened delivery: what it gives its readers."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import mole
from deliveries import SHAPE, SMALL, make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.exchange.facts import SplitFacts
from mole.provider.deliver import deliver
from mole.storage.stores import LocalStore


@pytest.fixture(scope="module")
def delivery(tmp_path_factory) -> Delivery:
    folder = tmp_path_factory.mktemp("delivery")
    source = write_npz(folder / "data.npz", train=40, test=0)
    deliver(source, make_layer(), make_key(), folder / "out", dtype="int8", **SMALL)
    return Delivery.open(folder / "out")


@pytest.mark.parametrize("at_most", [1, 16, 20, 40, 1000])
def test_the_first_rows_are_decoded_and_no_more_than_asked_for(delivery, at_most):
    rows, ids = delivery.first_rows("train", at_most)
    assert rows.shape == (min(at_most, 40), *SHAPE)
    assert ids == delivery.row_ids("train")[:at_most]
    stored = np.concatenate([shard.values for shard in delivery.shards("train")])[:at_most]
    assert rows.dtype == np.float32
    assert np.array_equal(rows.reshape(len(rows), -1), delivery.encoding.decode(stored))


def test_a_split_without_rows_is_one_sentence(delivery, tmp_path):
    """The manifest is the other side's, and may list a split that has nothing in it."""
    empty = replace(delivery.manifest, splits={"train": SplitFacts(0, 0, 0, "uint8")})
    shutil.copytree(delivery.label, tmp_path / "empty")
    empty.write(LocalStore(tmp_path / "empty"))
    with pytest.raises(DeliveryError, match=r"has no rows in split 'train'"):
        mole.audit(tmp_path / "empty")
