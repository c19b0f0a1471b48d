"""The file that counts what images have given away: its budgets, its names, several writers and readers."""

import sqlite3
from contextlib import closing

import pytest

from fronts import feature_key
from mole.errors import DeliveryError
from mole.provider.ledger import Ledger
from mole.provider.request_log import RequestLog
from mole.provider.spending import REQUEST, Spending


def test_a_budget_holds_for_later_deliveries(tmp_path):
    spending = Spending((tmp_path / "a.spent", tmp_path / "b.spent"), "one key")
    assert spending.budget() is None
    spending.spend("asked", {"other": 0.5}, 5.0, keep=False)
    assert spending.budget() is None
    spending.spend("first", {"image": 1.0}, 4.0)
    spending.spend("first", {"image": 1.0})
    assert spending.budget() == 4.0
    with pytest.raises(DeliveryError, match="budget of 4 bits"):  # not raised in passing
        spending.spend("first", {"image": 1.0}, 9.0)
    with pytest.raises(DeliveryError, match=r"the budget is 1: .* or give a higher budget"):
        spending.spend("second", {"image": 3.0}, 1.0)
    assert spending.budget() == 4.0  # what was refused is not kept
    with pytest.raises(DeliveryError, match="the budget is 4"):
        spending.spend("second", {"image": 3.5})
    with pytest.raises(DeliveryError, match="has a budget of 4 bits"):
        spending.most_after("second", {"image": 1.0}, 9.0)
    spending.set_budget(9.0)
    assert spending.spend("second", {"image": 3.5}) == 4.5


def test_of_two_files_the_lower_budget_counts_and_another_key_has_its_own(tmp_path):
    paths = (tmp_path / "a.spent", tmp_path / "b.spent")
    Spending(paths[:1], "one key").set_budget(100.0)
    Spending(paths[1:], "one key").set_budget(4.0)
    assert Spending(paths, "one key").budget() == 4.0
    assert Spending(paths, "another key").budget() is None


def test_who_is_quicker_names_a_delivery(tmp_path):
    spending = Spending((tmp_path / "a.spent", tmp_path / "b.spent"))
    assert spending.begin("draft", "one") == "one"
    assert spending.begin("draft", "two") == "one"
    assert spending.begin("draft", "three", instead_of="one") == "three"
    assert spending.begin("draft", "four", instead_of="one") == "three"
    assert spending.draft("draft") == "three"


def test_a_look_after_a_writer_was_killed(tmp_path):
    path = tmp_path / "a.spent"
    spending = Spending((path,))
    spending.spend("one", {f"image {number}": 1.0 for number in range(3000)})
    with closing(sqlite3.connect(path)) as killed:
        killed.execute("PRAGMA cache_size = 1")
        killed.execute("BEGIN IMMEDIATE")
        killed.execute("UPDATE spent SET bits = 9.0")  # more than the cache holds: it is in the file
        for suffix in ("", "-journal"):
            (tmp_path / f"b.spent{suffix}").write_bytes((tmp_path / f"a.spent{suffix}").read_bytes())
        killed.rollback()
    found = Spending((tmp_path / "b.spent",), to_look=True)
    assert set(found.totals().values()) == {1.0}


def test_requests_are_no_deliveries(tmp_path):
    spending = Spending((tmp_path / "a.spent",))
    spending.spend("a delivery", {"image": 1.0, "another": 1.0})
    for number in range(5):
        spending.spend(f"{REQUEST}{number}", {"image": 0.5})
    assert spending.given_away("a delivery") == (pytest.approx(3.5), 1, 5)


def test_a_look_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))
    key = feature_key()
    ledger = Ledger(key.fingerprint, key.path)
    (path,) = Spending.beside(ledger).paths
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as old:  # as an early version made it
        old.execute("CREATE TABLE spent (delivery TEXT, image TEXT, bits REAL)")
        old.execute("INSERT INTO spent VALUES ('one', 'image', 1.5)")
        old.commit()
    before = path.read_bytes()
    found = Spending.kept(ledger)
    assert (found.totals(), found.budget(), found.draft("any")) == ({"image": 1.5}, None, None)
    assert found.given_away("one") == (1.5, 1, 0)
    assert path.read_bytes() == before
    assert RequestLog.kept(ledger).entries() == []
    assert {file.name for file in path.parent.iterdir()} == {path.name}
