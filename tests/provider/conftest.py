"""A sealed delivery, and what protected ones are made from, for the files that share them."""

import pytest

from deliveries import SMALL, make_key, make_layer, write_npz
from fronts import write_images_and_front
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
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


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with images and a front; a file that needs more there has one of its own."""
    return write_images_and_front(tmp_path_factory.mktemp("protected"))


@pytest.fixture(scope="module")
def protect(place):
    """One bit about each image."""
    return Protect(place / "front.onnx", bits=1.0)
