"""What a server has answered is not lost with a request that fails, nor asked and paid for again."""

import stat
import threading
from concurrent.futures import Future

import numpy as np
import pyarrow as pa
import pytest

import mole
from deliveries import SHAPE
from fronts import feature_key, feature_layer, write_front
from mole.errors import FileError, MoleWarning, ServerError
from mole.exchange.inference_messages import Message, Tensor
from mole.protection.front_file import read_front
from mole.provider.gathering import Batch, gather
from mole.provider.kept_answers import KeptAnswers
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.predicting import predict_images
from mole.provider.request_log import RequestLog
from mole.provider.spending import Spending
from played import facts_for, played

COUNT = 300


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))


@pytest.fixture
def key() -> MorphKey:
    return MorphKey.generate(SHAPE)


@pytest.fixture
def data(tmp_path, rng):
    np.savez(tmp_path / "data.npz", x_test=rng.integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8))
    return tmp_path / "data.npz"


@pytest.fixture
def kept(tmp_path) -> KeptAnswers:
    return KeptAnswers.beside(tmp_path / "found.parquet")


def telling(request: Message) -> Message:
    """Answers that depend on what was asked."""
    rows = request.tensors[0].floats()
    scores = np.exp(rows.reshape(len(rows), -1)[:, :4] / 10)
    found = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
    return Message((Tensor.of("probabilities", found),), request.id)


def rows_in(seen: list) -> int:
    return sum(len(content) for _, content in seen) // (4 * np.prod(SHAPE))


def assert_alike(found: pa.Table, expected: pa.Table) -> None:
    """The same answers; some CPUs morph a row to other last bits among others than alone."""
    assert found.drop(["probability"]).equals(expected.drop(["probability"]))
    one, two = (table["probability"].combine_chunks().flatten().to_numpy() for table in (found, expected))
    np.testing.assert_allclose(one, two, rtol=1e-4)


def test_a_call_that_failed_goes_on_where_it_was(key, data, kept):
    with played([telling, telling, 400], facts_for(key), otherwise=telling) as (url, seen):
        with mole.Client(url, key) as client, pytest.raises(ServerError, match="not now"):
            predict_images(client, data, kept=kept)
        with mole.Client(url, key) as client:
            call = client.call()
            count = len(kept.of(call))
            assert 128 <= count < COUNT
            assert count == sum(one.rows for one in log_of(key) if one.answered)
            assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
            seen.clear()
            with pytest.warns(MoleWarning, match=rf"{count} answers to an earlier call are taken from .*"):
                found = predict_images(client, data, kept=kept)
            assert rows_in(seen) == COUNT - count
            assert len(kept.of(call)) == COUNT
            assert_alike(found, predict_images(client, data))
    kept.remove()
    assert not kept.is_there


@pytest.mark.parametrize("change", ["server", "model", "images", "key"])
def test_another_call_gets_answers_of_its_own(key, data, kept, rng, change):
    other = MorphKey.generate(SHAPE) if change == "key" else key
    with (
        played([], facts_for(key), otherwise=telling) as (url, seen),
        played([], facts_for(other), otherwise=telling) as (elsewhere, seen_there),
    ):
        with mole.Client(url, key) as client:
            predict_images(client, data, kept=kept)
        assert rows_in(seen) == COUNT
        if change == "images":
            np.savez(data, x_test=rng.integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8))
        place = url if change in ("model", "images") else elsewhere
        model = "other" if change == "model" else "model"
        with mole.Client(place, other, model=model) as client:
            expected = predict_images(client, data)
            if change == "images":  # the same call, and none of its images
                with pytest.warns(MoleWarning, match="an earlier call"):
                    assert_alike(predict_images(client, data, kept=kept), expected)
            else:
                assert_alike(predict_images(client, data, kept=kept), expected)
    assert rows_in(seen) + rows_in(seen_there) == 3 * COUNT


@pytest.mark.filterwarnings("ignore:.*answers to an earlier call")
def test_protected_answers_are_paid_for_once(tmp_path, data, kept):
    front = write_front(tmp_path / "front.onnx")
    facts = facts_for(feature_key(), front=read_front(front).digest, clip=1.0)
    key, layer, protect = feature_key(), feature_layer(), mole.Protect(front, bits=2)
    spending = Spending.beside(Ledger(key.fingerprint, key.path))
    with played([telling, telling, 400], facts, otherwise=telling) as (url, _):
        with mole.Client(url, key, layer, protect=protect) as client:
            with pytest.raises(ServerError, match="not now"):
                predict_images(client, data, kept=kept)
            count = len(kept.of(client.call()))
        assert count >= 128
        counted = len(spending.totals())
        assert count < counted <= 256  # not those that were not asked about yet
        with mole.Client(url, key, layer, protect=protect) as client:
            assert predict_images(client, data, kept=kept).num_rows == COUNT
    twice = [bits for bits in spending.totals().values() if bits == pytest.approx(4)]
    assert len(twice) == counted - count  # what was sent, or may have been, and was not answered
    assert len(spending.totals()) == COUNT


def test_requests_under_way_are_waited_for_and_others_called_off():
    batches = [Batch(place, np.zeros((1, 2)), str(place)) for place in range(4)]
    waiting = [Future() for _ in batches]
    for future in waiting[:3]:
        future.set_running_or_notify_cancel()
    waiting[0].set_exception(ServerError("not now"))
    waiting[2].set_exception(ServerError("not either"))
    taken, stop = [], threading.Event()
    late = threading.Timer(0.2, waiting[1].set_result, ["late"])
    late.start()
    with pytest.raises(ServerError, match="not now"):
        gather(batches, waiting, lambda batch, answer: taken.append((batch.id, answer)), stop)
    assert stop.is_set()
    late.join()
    assert taken == [("1", "late")]
    assert waiting[3].cancelled()


def test_a_file_of_something_else_is_left_alone(key, data, kept):
    kept.path.write_text("notes of mine, and no answers at all: " * 40)
    before = kept.path.read_bytes()
    with (
        played([], facts_for(key)) as (url, seen),
        mole.Client(url, key) as client,
        pytest.raises(FileError, match=r"is not what answers are kept in .*: remove it, or choose another"),
    ):
        predict_images(client, data, kept=kept)
    assert seen == []
    assert kept.path.read_bytes() == before


def test_what_was_readable_for_others_no_longer_is(kept):
    kept.path.touch(0o644)
    kept.path.chmod(0o644)
    kept.keep("call", ["image"], np.ones((1, 2), np.float32))
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600


def test_answers_of_another_number_of_classes_are_not_mixed(key, data, kept):
    with played([], facts_for(key), otherwise=telling) as (url, _), mole.Client(url, key) as client:
        predict_images(client, data, kept=kept)
        call = client.call()
        image = next(iter(kept.of(call)))
        kept.remove()
        kept.keep(call, [image], np.ones((1, 99), np.float32))
        with pytest.warns(MoleWarning, match="1 answer"), pytest.raises(ServerError, match="other classes"):
            predict_images(client, data, kept=kept)


def log_of(key: MorphKey) -> list:
    return RequestLog.beside(Ledger(key.fingerprint, key.path)).entries()
