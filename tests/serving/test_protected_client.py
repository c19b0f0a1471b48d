"""Protected requests: what is refused before anything is sent or counted, and what counts for what."""

import numpy as np
import pytest

import mole
from deliveries import SHAPE
from fronts import feature_key, feature_layer, write_front
from mole.errors import ParameterError, ServerError, ShapeError
from mole.protection.front_file import read_front
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.protected_requests import as_stored
from mole.provider.spending import Spending
from mole.scheme.normalisation import Normalisation
from played import facts_for, played


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    return write_front(tmp_path_factory.mktemp("front") / "front.onnx")


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (5, *SHAPE), dtype=np.uint8)


def spent(key: MorphKey) -> dict[str, float]:
    return Spending.beside(Ledger(key.fingerprint, key.path)).totals()


def facts_of(front, clip: float):
    return facts_for(feature_key(), front=read_front(front).digest, clip=clip)


def client_of(url: str, front, *, clip: float = 1.0) -> mole.Client:
    return mole.Client(url, feature_key(), feature_layer(), protect=mole.Protect(front, bits=2, clip=clip))


def test_another_clip_is_refused_before_anything_is_sent_or_counted(front, images):
    with (
        played([], facts_of(front, 2.0)) as (url, seen),
        client_of(url, front) as client,
        pytest.raises(ServerError, match=r"to a length of 2\.0, and .* clipped to 1\.0: give clip="),
    ):
        client.predict(images)
    assert seen == []
    assert spent(feature_key()) == {}


def test_the_clip_of_the_delivery_is_asked_with(front, images):
    with played([], facts_of(front, 2.0)) as (url, seen), client_of(url, front, clip=2.0) as client:
        client.predict(images)
    assert len(seen) == 1
    assert list(spent(feature_key()).values()) == pytest.approx([2.0] * 5)


@pytest.fixture
def asked(front):
    """A client of a server that answers, and what this was sent."""
    with played([], facts_of(front, 1.0)) as (url, seen), client_of(url, front) as client:
        yield client, seen


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_every_image_is_counted_by_an_original_of_its_own(asked, images, count):
    client, seen = asked
    originals = [as_stored(images[number % 5]) for number in range(count)]
    with pytest.raises(ShapeError, match=rf"5 images and {count} originals? w.* each image is counted by"):
        client.predict_plain(read_plain(images), originals=originals)
    assert seen == []
    assert spent(feature_key()) == {}


def test_protected_requests_need_originals(asked, images):
    client, seen = asked
    with pytest.raises(ParameterError, match=r"by what it was made from, .*: give originals="):
        client.predict_plain(read_plain(images))
    assert seen == []
    assert spent(feature_key()) == {}


def test_images_of_another_shape_are_refused_before_they_are_counted(asked, images):
    client, seen = asked
    with pytest.raises(ShapeError, match="do not fit a front of 3x8x8"):
        client.predict_plain(read_plain(images)[:, :, :4], originals=list(images))
    assert seen == []
    assert spent(feature_key()) == {}


def test_an_image_is_the_same_one_however_it_is_asked_about(asked, images):
    client, _ = asked
    client.predict(images)
    client.predict_plain(read_plain(images), originals=[as_stored(one) for one in images])
    assert list(spent(feature_key()).values()) == pytest.approx([4.0] * 5)


def read_plain(images: np.ndarray) -> np.ndarray:
    return Normalisation((0.5,) * 3, (0.3,) * 3).apply(images)
