"""Work on a sealed delivery that stops, goes on, or finds something else in its place."""

import sys
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

import mole
from deliveries import SMALL, contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.exchange.shard_files import ShardFile
from mole.exchange.shards import Encoding
from mole.provider import local_engine
from mole.provider.deliver import deliver
from mole.provider.keys.transport import seal_key
from mole.provider.plan import Plan
from mole.provider.ray_engine import _Worker
from mole.provider.sealing import own_identity
from mole.sources.opening import open_source
from mole.storage.sealed import SealedStore
from mole.storage.stores import LocalStore
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER, sealed_files

SEALED = {**SMALL, "recipients": [RECIPIENT]}

IDENTITY = str(DEVELOPER)


class PlugPulledError(Exception):
    """The work ends here."""


@pytest.fixture
def unfinished(data, tmp_path, monkeypatch):
    """A sealed delivery that was interrupted after its third shard."""

    def pull(done, total):
        if done >= 45:
            raise PlugPulledError

    monkeypatch.setattr(local_engine, "MAX_WORKERS", 1)
    with pytest.raises(PlugPulledError):
        deliver(data, make_layer(), make_key(), tmp_path / "d", dtype="int8", progress=pull, **SEALED)
    return tmp_path / "d"


def test_interrupted_work_resumes(unfinished, data):
    before = contents(unfinished)
    shards = [name for name in before if name.startswith("data/")]
    assert "unfinished.json.age" in before
    assert shards
    with pytest.raises(DeliveryError, match="holds a delivery that is not finished"):
        Delivery.open(unfinished, identity=own_identity(make_key()))
    deliver(data, make_layer(), make_key(), unfinished, dtype="int8", **SEALED)
    after = contents(unfinished)
    assert {name: after[name] for name in shards} == {name: before[name] for name in shards}
    assert "unfinished.json.age" not in after
    assert all(check.holds for check in mole.verify(unfinished, identity=IDENTITY))


def test_it_resumes_for_the_same_recipients_only(unfinished, data):
    arguments = (data, make_layer(), make_key(), unfinished)
    others = {**SEALED, "recipients": [str(STRANGER.to_public())]}
    with pytest.raises(DeliveryError, match="an unfinished delivery, made with other recipients: "):
        deliver(*arguments, dtype="int8", **others)
    with pytest.raises(DeliveryError, match="holds a sealed delivery, finished or not: to finish it"):
        deliver(*arguments, dtype="int8", **SMALL)


def test_another_key_is_told_to_choose_another_place(unfinished, made, data):
    for place in (unfinished, made):
        before = contents(place)
        with pytest.raises(
            DeliveryError, match=r"sealed under another key: .* choose another place, or replace it"
        ):
            deliver(data, make_layer(), make_key(1), place, dtype="int8", **SEALED)
        assert contents(place) == before


def test_a_finished_one_stays_as_it_is(made, data):
    before = contents(made)
    deliver(data, make_layer(), make_key(), made, dtype="int8", **SEALED)
    assert contents(made) == before
    with pytest.raises(DeliveryError, match="holds another delivery already"):
        deliver(data, make_layer(), make_key(), made, dtype="float32", **SEALED)


def test_it_is_not_sealed_into_a_place_with_clear_files(data, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "unfinished.json").write_text("{}")
    with pytest.raises(
        DeliveryError, match=r"are not sealed, such as unfinished.json: choose another place"
    ):
        deliver(data, make_layer(), make_key(), tmp_path / "d", **SEALED)


def test_a_failure_leaves_nothing_behind(data, tmp_path):
    broken = write_npz(tmp_path / "broken.npz")
    with np.load(broken) as arrays:
        np.savez(broken, **{name: array * np.nan for name, array in arrays.items() if name[0] == "x"})
    with pytest.raises(mole.MoleError):
        deliver(broken, make_layer(), make_key(), tmp_path / "d", **SEALED)
    assert not (tmp_path / "d").exists()


def test_a_worker_of_ray_seals_too(tmp_path, data, monkeypatch):
    """It gets the recipients with the plan; this one runs here, without the rest of Ray."""
    key, parcel = make_key(), seal_key(make_key())
    opener = SimpleNamespace(remote=lambda: parcel.opener)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda answer: answer))
    plan = Plan(open_source(data), key, make_layer(), str(data), recipients=(RECIPIENT,))
    worker = _Worker(
        plan, str(tmp_path / "d"), parcel.box, Encoding("float32"), SimpleNamespace(opener=opener)
    )
    worker(asdict(plan.jobs[0]))
    assert sealed_files(tmp_path / "d") == {f"{plan.jobs[0].name}.age"}
    store = SealedStore(LocalStore(tmp_path / "d"), identities=[IDENTITY])
    assert ShardFile(store, plan.jobs[0].name).row_count() == plan.jobs[0].rows
