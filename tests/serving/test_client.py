"""The client: what it trusts, when it tries again, and what it writes down."""

import signal

import numpy as np
import pytest

import mole
from mole.errors import ParameterError, ServerError
from mole.exchange.inference_messages import Message, Tensor
from mole.exchange.served_model import Images, ServedFacts
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.request_log import RequestLog
from played import facts_for, played, right
from served import free_ports, start, stop
from trained_signs import SHAPE


def log_of(key: MorphKey) -> list:
    return RequestLog.beside(Ledger(key.fingerprint, key.path)).entries()


@pytest.fixture
def key() -> MorphKey:
    """A key without a past."""
    return MorphKey.generate(SHAPE)


def test_a_request_is_sent_again_with_the_same_id_and_bytes(key, rng):
    images = rng.normal(size=(3, *SHAPE)).astype(np.float32)
    with (
        played(["hang up", 503, "hang up", 429], facts_for(key)) as (url, seen),
        mole.Client(url, key) as client,
    ):
        found = client.predict(images)
    assert found.probabilities.shape == (3, 4)
    assert len(seen) == 5
    assert len(set(seen)) == 1
    (entry,) = log_of(key)
    assert (entry.id, entry.rows, entry.answered) == (seen[0][0], 3, True)


def test_what_is_refused_is_not_sent_again(key, rng):
    with (
        played([400], facts_for(key)) as (url, seen),
        mole.Client(url, key) as client,
        pytest.raises(ServerError, match=r"refuses \(400\): not now"),
    ):
        client.predict(rng.normal(size=(3, *SHAPE)).astype(np.float32))
    assert len(seen) == 1
    assert [entry.answered for entry in log_of(key)] == [False]


def giving(*shape: int, value: float):
    """An answer of one number, in a shape of its own."""
    tensor = Tensor.of("probabilities", np.full(shape, value, np.float32))
    return lambda request: Message((tensor,), request.id)


WRONG = {
    "another id": (lambda one: Message(right(one).tensors, "x"), "answered another request"),
    "fewer rows": (giving(1, 4, value=0.25), "shape"),
    "more classes": (giving(3, 5, value=0.2), "shape"),
    "no number": (giving(3, 4, value=np.nan), "no probabilities"),
    "another name": (lambda one: Message((Tensor.of("x", np.ones((3, 4), "f4")),), one.id), "no tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_answers_are_checked(key, rng, name):
    answer, words = WRONG[name]
    with (
        played([answer], facts_for(key)) as (url, _),
        mole.Client(url, key) as client,
        pytest.raises(ServerError, match=words),
    ):
        client.predict(rng.normal(size=(3, *SHAPE)).astype(np.float32))


def test_the_server_is_not_believed_about_plain_data(vgg_file, rng):
    """It may say what it likes of normalisation: what is sent follows from the provider's own layer."""
    lying = Images(mole.Normalisation((0.0,), (9.0,)), layer_fingerprint=None)
    facts = ServedFacts("net", SHAPE, 4, None, vgg_file.key.fingerprint, lying)
    images = vgg_file.images[:2]
    with played([], facts) as (url, seen), mole.Client(url, vgg_file.key, vgg_file.layer) as client:
        client.predict(images)
    expected = mole.morph(vgg_file.layer.plain(images), vgg_file.key)
    assert seen[0][1] == expected.astype("<f4").tobytes()


MISFITS = {
    "a layer": ({"layer_fingerprint": "0" * 32}, "was trained for first layer 0000"),
    "a front": ({"front": "0" * 64, "clip": 1.0}, "trained on protected features: give protect"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_network_of_other_data_is_refused_before_anything_is_sent(vgg_file, name):
    changes, words = MISFITS[name]
    with (
        played([], facts_for(vgg_file.key, **changes)) as (url, seen),
        mole.Client(url, vgg_file.key, vgg_file.layer) as client,
        pytest.raises(ServerError, match=words),
    ):
        client.predict(vgg_file.images[:2])
    assert seen == []


def test_a_network_on_normalised_images_needs_the_layer(key, rng):
    facts = facts_for(key, normalisation=mole.Normalisation((0.5,), (0.5,)))
    with (
        played([], facts) as (url, _),
        mole.Client(url, key) as client,
        pytest.raises(ServerError, match=r"the first layer says how: give layer="),
    ):
        client.predict(rng.normal(size=(3, *SHAPE)).astype(np.float32))


def test_a_server_that_knows_nothing_of_keys_is_asked_all_the_same(key, rng):
    said = {"inputs": [{"name": "morphed", "datatype": "FP32", "shape": [-1, *SHAPE]}]}
    with played([], None, others=said) as (url, _), mole.Client(url, key) as client:
        found = client.predict(rng.normal(size=(130, *SHAPE)).astype(np.float32))
    assert found.names == ["0"] * 130
    assert sorted(entry.rows for entry in log_of(key)) == [2, 64, 64]
    other = {"inputs": [{"name": "morphed", "datatype": "FP32", "shape": [-1, 3, 4, 4]}]}
    with (
        played([], None, others=other) as (url, _),
        mole.Client(url, key) as client,
        pytest.raises(ServerError, match="ask for the network of its data"),
    ):
        client.predict(rng.normal(size=(2, *SHAPE)).astype(np.float32))


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1", "127.0.0.1:80", "http://a:b@127.0.0.1", "http://127.0.0.1:x"]
)
def test_urls_that_are_none(key, url):
    with pytest.raises(ParameterError, match=r"URL"):
        mole.Client(url, key)


@pytest.mark.filterwarnings("ignore:.*trying again for up to")  # where the second server starts slowly
def test_no_answer_is_lost_or_doubled_when_the_server_is_killed(vgg_file):
    """Killed in the middle of a question and started again at the same place."""
    ports = dict(zip(("port", "grpc_port"), free_ports(2), strict=True))
    running = [start(vgg_file.file, **ports)]
    images = np.concatenate([vgg_file.images] * 40)

    def interrupt(done: int, _: int) -> None:
        if done >= 1000 and len(running) == 1:
            stop(running[0], signal.SIGKILL)
            running.append(start(vgg_file.file, **ports))

    key = vgg_file.key
    before = {entry.id for entry in log_of(key)}
    try:
        with mole.Client(running[0].grpc, key, vgg_file.layer, model="vgg", batch_rows=50) as client:
            found = client.predict(images, progress=interrupt)
    finally:
        stop(running[-1])
    assert len(running) == 2
    expected = vgg_file.torch(mole.morph(vgg_file.layer.plain(vgg_file.images), key))
    assert np.allclose(found.probabilities.reshape(40, -1, 4), expected, atol=1e-4)
    entries = [entry for entry in log_of(key) if entry.id not in before]
    assert sum(entry.rows for entry in entries) == len(images)
    assert all(entry.answered for entry in entries)
