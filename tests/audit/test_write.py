"""audit.json and its folder: everything that was found, in a fixed form, or nothing at all."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from audit_report import made_up_plots, made_up_report
from mole.audit import write
from mole.audit.report import Report
from mole.audit.scoring import Score
from mole.audit.wording import MEASURES
from mole.audit.write import to_json
from mole.errors import DeliveryError


def test_json_holds_everything_but_pictures():
    report, plots = made_up_report(), made_up_plots()
    text = to_json(report, plots)
    told = json.loads(text)
    assert (told["format"], told["version"]) == ("mole-audit", 1)
    assert [attack["name"] for attack in told["attacks"]] == [found.attack.name for found in report.attacks]
    assert told["attacks"][4]["score"]["rmse"] == 1.6e-05
    assert told["attacks"][4]["pictures"][0][0] == "Original"
    assert told["plots"][0]["rows"] == [list(row) for row in plots[0].rows]
    assert told["costs"][2]["measured"] is None
    assert "svg" not in text
    assert "PNG" not in text


def test_json_does_not_depend_on_the_order_of_entries_or_the_kind_of_number():
    report = made_up_report()
    one = replace(report.attacks[0], facts={"a": 1, "b": np.float32(0.1), "c": np.nan, "d": [np.int64(3)]})
    other = replace(one, facts={"d": (3,), "c": np.inf, "b": 0.1, "a": np.int8(1)})
    texts = [to_json(replace(report, attacks=(attack,))) for attack in (one, other)]
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["attacks"][0]["facts"] == {"a": 1, "b": 0.1, "c": None, "d": [3]}


def test_json_refuses_bytes():
    report = made_up_report()
    with pytest.raises(TypeError, match="no place"):
        to_json(replace(report, subject={"x": b"1"}))


def test_json_keeps_the_order_and_the_words_of_its_format():
    told = json.loads(to_json(made_up_report()))
    assert list(told) == [
        "format", "version", "mole_version", "title", "date", "by", "receiver", "headline", "delivery",
        "subject", "warnings", "verdicts", "remarks", "attacks", "plots", "costs",
    ]  # fmt: skip
    assert list(told["verdicts"][0]) == ["attacker", "who", "level", "fully_tested", "sentence", "advice"]
    assert list(told["attacks"][0]) == [
        "name", "title", "attacker", "source", "advice", "status", "words", "published", "seconds", "score",
        "facts", "pictures",
    ]  # fmt: skip
    assert [verdict["level"] for verdict in told["verdicts"]] == [
        "leaks",
        "nothing found",
        "broken",
        "not tested",
    ]
    assert [attack["status"] for attack in told["attacks"]][:3] == [
        "partly succeeded", "succeeded", "not tried"
    ]  # fmt: skip
    assert told["attacks"][0]["attacker"] == "outsider"
    assert (told["delivery"]["images"], told["delivery"]["splits"]["train"]) == (12_000, 10_000)
    assert json.loads(to_json(Report(subject={})))["delivery"] is None
    assert told["attacks"][2]["score"] == {}


def test_every_figure_of_a_score_has_words():
    assert {field.name for field in fields(Score)} == {*MEASURES, "reidentified", "among"}


def test_a_report_saves_itself_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "paper_figures", made_up_plots)
    page = made_up_report().save(tmp_path / "new" / "audit")
    assert page == tmp_path / "new" / "audit" / "audit.html"
    assert sorted(path.name for path in page.parent.iterdir()) == ["audit.html", "audit.json"]
    assert page.parent.stat().st_mode & 0o077 == 0
    assert "How alike morphed" in page.read_text(encoding="utf-8")
    with pytest.raises(DeliveryError, match="exists already"):
        made_up_report().save(str(page.parent))


def test_a_report_that_cannot_be_saved_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "paper_figures", tuple)
    (tmp_path / "file").touch()
    with pytest.raises(DeliveryError, match="cannot be written"):
        Report(subject={}).save(tmp_path / "file" / "audit")
    with pytest.raises(TypeError, match="no place"):
        Report(subject={"x": b"1"}).save(tmp_path / "audit")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_print_shows_of_a_report_is_short():
    report = made_up_report()
    shown = repr(report)
    assert shown == str(report)
    assert len(shown) < 400
    for verdict in report.verdicts:
        assert f"{verdict.attacker.value}: {verdict.level.value}" in shown
    assert f"{len(report.attacks)} attacks" in shown
    assert repr(Report(subject={})) == (
        "Report('What this delivery gives away', no verdicts, 0 attacks, 0 warnings)"
    )
