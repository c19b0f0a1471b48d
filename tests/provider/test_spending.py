"""What every image has given away is counted, over deliveries, fronts and views, and never forgotten."""

import stat
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from deliveries import write_npz
from fronts import feature_key, feature_layer, write_front
from mole.errors import DeliveryError, MoleWarning
from mole.exchange.protection_words import protection_in_words
from mole.provider import local_engine, protector
from mole.provider.counting import Counting
from mole.provider.deliver import deliver
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.protect import Protect
from mole.provider.protector import Protector
from mole.provider.spending import Spending
from secrets_kept import RECIPIENT


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spending")
    write_npz(folder / "data.npz")
    write_npz(folder / "strangers.npz", seed=1)
    write_front(folder / "front.onnx")
    write_front(folder / "other-front.onnx", seed=1)
    return folder


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


class NoFront:
    """In place of a front's process: what images give away is counted whatever their features are."""

    def __init__(self, front, threads):
        self._features = front.dimensions

    def __call__(self, images):
        return np.zeros((len(images), self._features), np.float32)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def no_front(monkeypatch):
    monkeypatch.setattr(protector, "FrontRunner", NoFront)


@pytest.fixture
def give(place, tmp_path):
    """Deliver to a place of that name, with some bits and a budget."""

    def given(name, *, bits=1.0, budget=None, front="front.onnx", data="data.npz", key=None, **options):
        return deliver(
            place / data, feature_layer(), key or feature_key(), tmp_path / name,
            protect=Protect(place / front, bits=bits, budget=budget), rows_per_shard=16, **options,
        )  # fmt: skip

    return given


def spending(key=None):
    key = key or feature_key()
    return Spending.beside(Ledger(key.fingerprint, key.path))


def test_bits_add_up_over_deliveries_and_fronts(give):
    assert give("one").spent == pytest.approx(1.0)
    assert give("two", bits=0.5, front="other-front.onnx").spent == pytest.approx(1.5)
    assert give("three", data="strangers.npz").spent == pytest.approx(1.0)
    assert len(spending().totals()) == 260


def test_what_the_images_of_one_delivery_have_given_away_in_all(give):
    first = give("one").delivery.manifest.delivery_id
    assert spending().given_away(first) == (pytest.approx(1.0), 1, 0)
    give("two", bits=0.5)
    third = give("three", data="strangers.npz", bits=0.25).delivery.manifest.delivery_id
    assert spending().given_away(first) == (pytest.approx(1.5), 3, 0)
    assert spending().given_away(third) == (pytest.approx(0.25), 3, 0)
    assert spending().given_away("another") is None


def test_the_budget_refuses_and_nothing_is_written_or_counted(give, tmp_path):
    give("one")
    before = spending().totals()
    with pytest.raises(DeliveryError, match=r"130 images would .* up to 2 bits .* budget is 1\.5"):
        give("two", budget=1.5)
    assert spending().totals() == before
    assert not (tmp_path / "two").exists() or not any((tmp_path / "two").iterdir())
    assert give("three", budget=2.0).spent == pytest.approx(2.0)


def test_no_password_of_a_place_is_written_down(place, state):
    deliver(
        place / "data.npz", feature_layer(), feature_key(), "memory://me:sesame@host/delivery",
        protect=Protect(place / "front.onnx", bits=1.0), rows_per_shard=16,
    )  # fmt: skip
    written = [file.read_bytes() for file in state.rglob("*") if file.is_file()]
    assert any(b"drafts" in content for content in written)
    assert not any(b"sesame" in content for content in written)


def test_a_delivery_that_was_begun_by_version_0_8_is_known_again(give, monkeypatch):
    mac = MorphKey.mac
    with monkeypatch.context() as before:
        before.setattr(
            MorphKey, "mac", lambda key, why, text: text if why == "draft" else mac(key, why, text)
        )
        begun = give("one")
    again = give("one")
    assert again.was_complete
    assert again.delivery.manifest.delivery_id == begun.delivery.manifest.delivery_id
    assert give("one").was_complete  # under its new name


def test_calling_again_counts_nothing(give):
    give("one")
    again = give("one", budget=1.0)
    assert again.was_complete
    assert again.spent == pytest.approx(1.0)


def test_the_same_place_made_anew_counts_again(give, tmp_path):
    give("one")
    for path in sorted((tmp_path / "one").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert give("one").spent == pytest.approx(2.0)


def test_views_of_one_image_add_up(give):
    with pytest.warns(MoleWarning, match="Their bits add up: each image tells up to 3$"):
        made = give("one", views=3)
    assert made.spent == pytest.approx(3.0)
    words = [*protection_in_words(made.delivery.manifest, is_labelled=True)]
    assert words[-1].startswith("Each image of train has 3 rows: together they tell 3 bits at most")
    assert words[-1] in made.delivery.store.read("README.md").decode()


def test_work_that_goes_on_keeps_finished_shards_and_counts_once(give, tmp_path, monkeypatch):
    class PlugPulledError(Exception):
        pass

    calls = []

    def rows(self, images, split):
        calls.append(split)
        if len(calls) > 3:
            raise PlugPulledError
        return real(self, images, split)

    real = Protector.rows
    monkeypatch.setattr(local_engine, "processors", lambda: 1)
    monkeypatch.setattr(Protector, "rows", rows)
    with pytest.raises(PlugPulledError):
        give("one", budget=1.0)
    monkeypatch.setattr(Protector, "rows", real)
    with pytest.raises(DeliveryError, match="the budget is 1"):
        give("another")  # what was begun counts, and so does its budget
    monkeypatch.setattr(Protector, "rows", rows)
    finished = {path: path.read_bytes() for path in (tmp_path / "one").rglob("*.parquet")}
    assert finished
    monkeypatch.setattr(Protector, "rows", real)
    made = give("one", budget=1.0)
    assert made.spent == pytest.approx(1.0)
    assert all(path.read_bytes() == content for path, content in finished.items())


def test_a_failure_before_the_first_row_is_taken_back(give, monkeypatch):
    def refuse(self, images, split):
        raise DeliveryError("no")

    real = Protector.rows
    monkeypatch.setattr(Protector, "rows", refuse)
    with pytest.raises(DeliveryError):
        give("one", budget=1.0)
    assert (spending().totals(), spending().budget()) == ({}, 1.0)
    monkeypatch.setattr(Protector, "rows", real)
    assert give("one").spent == pytest.approx(1.0)


def test_a_copy_of_the_key_finds_it_and_so_does_the_key_on_another_machine(give, state, tmp_path):
    key = feature_key()
    key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    give("one", key=key)
    assert (tmp_path / "provider.key.spent").exists()
    assert give("two", key=feature_key()).spent == pytest.approx(2.0)  # in the user's folder
    for path in state.rglob("*.spent"):
        path.unlink()
    assert give("three", key=key).spent == pytest.approx(2.0)  # beside the key


def test_it_is_for_the_owner_alone_and_names_no_image(give, state):
    give("one")
    (path,) = state.rglob("*.spent")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {len(image) for image in spending().totals()} == {32}


def test_a_damaged_file_stops_the_delivery(give, state):
    give("one")
    (path,) = state.rglob("*.spent")
    path.write_bytes(b"no database" * 500)
    with pytest.raises(DeliveryError, match="restore it from a copy"):
        give("two")


def test_two_deliveries_at_once_do_not_exceed_the_budget_together(give, monkeypatch):
    """Both have looked before either has counted: what counts looks once more."""
    both_looked = Barrier(2)
    real = Counting.check_budget

    def look(self):
        most = real(self)
        both_looked.wait(30)
        return most

    monkeypatch.setattr(Counting, "check_budget", look)
    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(give, name, budget=1.5) for name in ("one", "two")]
        errors = [one.exception() for one in tries]
    assert [type(error) for error in errors if error is not None] == [DeliveryError]
    assert max(spending().totals().values()) == pytest.approx(1.0)


def test_a_delivery_that_was_replaced_and_is_made_anew_counts_again(give):
    """Its rows have left, and the same call gives other noise."""
    assert give("one").spent == pytest.approx(1.0)
    assert give("one", bits=0.5, replace=True).spent == pytest.approx(1.5)
    assert give("one", replace=True).spent == pytest.approx(2.5)


def test_two_calls_at_once_are_one_delivery(give, monkeypatch):
    """Both find that nothing was begun; the name that the second would give must not replace the first."""
    both_looked = Barrier(2)
    real, named = Spending.draft, []

    def look(self, draft):
        found = real(self, draft)
        both_looked.wait(30)
        return found

    def note(self):
        named.append(self.plan.delivery_id)
        raise DeliveryError("enough")

    monkeypatch.setattr(Spending, "draft", look)
    monkeypatch.setattr(Counting, "check_budget", note)
    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(give, "one") for _ in range(2)]
        assert all("enough" in str(one.exception()) for one in tries)
    assert len(named) == 2
    assert len(set(named)) == 1


def test_a_call_made_while_another_one_counts_is_the_same_delivery(give, monkeypatch):
    """Nothing lies at the place yet, and nothing was counted: that is no reason for a new name."""
    named = []

    def note(self):
        named.append(self.plan.delivery_id)
        raise DeliveryError("enough")

    monkeypatch.setattr(Counting, "check_budget", note)
    for _ in range(2):
        with pytest.raises(DeliveryError, match="enough"):
            give("one")
    assert named[0] == named[1]
