"""An opened delivery: what it gives its readers."""

import numpy as np
import pytest

from deliveries import SHAPE, SMALL, make_key, make_layer, write_npz
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver


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
