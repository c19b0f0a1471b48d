"""A trained network as ONNX, and one server for each file of tests."""

from collections.abc import Iterator

import pytest

from served import Running, serving
from trained_signs import Trained, train


@pytest.fixture(scope="session")
def vgg_file(tmp_path_factory) -> Trained:
    return train("vgg", tmp_path_factory.mktemp("vgg"))


@pytest.fixture(scope="module")
def server(vgg_file) -> Iterator[Running]:
    """One server, which every test leaves as it found it."""
    with serving(vgg_file.file) as running:
        yield running


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOLE_STATE", str(tmp_path_factory.mktemp("state")))
        yield
