"""A sealed delivery, for the files that read it and those that go on with it."""

import pytest

from deliveries import SMALL, make_key, make_layer, write_npz
from mole.provider.deliver import deliver
from secrets_kept import RECIPIENT


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Small random images."""
    return write_npz(tmp_path_factory.mktemp("sealing") / "data.npz")


@pytest.fixture(scope="module")
def made(data, tmp_path_factory):
    """A delivery of them that is sealed for the developer."""
    out = tmp_path_factory.mktemp("sealing") / "delivery"
    deliver(data, make_layer(), make_key(), out, dtype="int8", **SMALL, recipients=[RECIPIENT])
    return out
