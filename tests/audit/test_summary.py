"""The sheet to sign: what leaves, for whom, what attackers can do, on one page whatever it is called."""

from dataclasses import replace

import pytest

from audit_report import HOSTILE, made_up_delivery, made_up_report
from browsers import LIGHT, PHONE, in_a_browser, problems, sheets
from mole.audit.report import Report
from mole.audit.summary import render_summary
from mole.errors import ParameterError

LONG = "a long name " * 400


def worst_report() -> Report:
    """Everything as long as anybody can make it."""
    names = tuple(f"{number} {HOSTILE} {LONG}" for number in range(40))
    delivery = made_up_delivery(
        name=LONG, delivery_id=LONG, layer_fingerprint=LONG, images=10**12, shape="16777216x1x1x1",
        splits=dict.fromkeys(names, 10**9), labelled=names, classes=names, columns=names,
        data_bytes=10**15, all_bytes=10**16, recipients=999, signature=LONG,
    )  # fmt: skip
    report = made_up_report()
    verdicts = tuple(
        replace(verdict, sentence=f"{LONG}; {LONG}", untried=LONG, advice=LONG)
        for verdict in report.verdicts
    )
    return replace(
        report, delivery=delivery, verdicts=verdicts, headline=LONG, warnings=(LONG,) * 20,
        by="m" * 80, receiver="m" * 80,
    )  # fmt: skip


@in_a_browser
@pytest.mark.parametrize("report", [made_up_report(), worst_report()], ids=["usual", "worst"])
def test_it_is_one_sheet_of_a4(browser, tmp_path, report):
    file = tmp_path / "summary.html"
    file.write_text(render_summary(report), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    assert sheets(page.pdf(prefer_css_page_size=True)) == 1
    page.evaluate("document.body.append(document.querySelector('main').cloneNode(true))")
    assert sheets(page.pdf(prefer_css_page_size=True)) == 2  # the count can fail
    page.close()
    for how in (LIGHT, PHONE):
        assert problems(browser, file, **how) == []


def test_it_says_what_leaves_and_for_whom():
    report = made_up_report()
    text = render_summary(report)
    for words in (
        report.headline, "12,000, each 1x28x28: train 10,000, test 2,000", "yes, in train, test", "coat, ",
        report.delivery.delivery_id, report.delivery.layer_fingerprint, "Model Makers Ltd",
        "sealed for 2 recipients", "2026-04-01", "A. Officer", "Name</div>", "Date</div>",
        "Signature</div>",
        "pseudonymised at best", "not legal advice", "2 remarks limit",
    ):  # fmt: skip
        assert words in text, words
    places = [text.index(verdict.sentence) for verdict in report.in_order]
    assert places == sorted(places)
    for verdict in report.verdicts:
        assert f"<dt>{verdict.level.label}</dt><dd><b>{verdict.who.replace(chr(39), '&#39;')}:" in text
    assert "<script" not in text
    assert "<img" not in text


def test_who_signs_sees_what_was_not_tested():
    """Long sentences are cut, and nobody signs for a finding that stands for half of the attacks."""
    report = made_up_report()
    first, *others = report.verdicts
    assert "not tested in full" not in render_summary(report)
    first = replace(first, sentence=LONG, fully_tested=False)
    assert "<dt>Leaks, not tested in full</dt>" in render_summary(
        replace(report, verdicts=(first, *others))
    )


def test_what_was_not_tried_is_never_cut_off():
    untried = (
        "3 attacks could not be tried (The budget of 20 seconds was used up before: give a larger budget)"
    )
    sentence = f"no attack we tried recognised images: 5 attacks, on {'many ' * 40}images"
    report = made_up_report()
    first = replace(
        report.verdicts[1], sentence=f"{sentence}; {untried}", fully_tested=False, untried=untried
    )
    text = render_summary(replace(report, verdicts=(first,)))
    assert "<dt>Nothing found, not tested in full</dt>" in text
    assert "no attack we tried recognised images: 5 attacks, on many" in text
    assert f"… (all of it: audit.html); {untried}." in text
    short = replace(first, sentence=f"found nothing; {untried}")
    assert f"</b> found nothing; {untried}." in render_summary(replace(report, verdicts=(short,)))


def test_what_nobody_said_is_left_to_be_filled_in():
    bare = made_up_delivery(classes=(), labelled=(), has_layer=False, recipients=0)
    text = render_summary(replace(made_up_report(), receiver="", by="", delivery=bare, warnings=()))
    assert '<dt>Receiver</dt><dd class="blank"></dd>' in text
    assert text.count("<dd>none</dd>") == 4
    assert "not sealed: whoever gets hold of the files can read them" in text
    assert "remark" not in text
    assert "Audit made with" in text


def test_a_setting_has_nothing_to_sign_for(tmp_path):
    with pytest.raises(ParameterError, match="about a delivery"):
        Report(subject={}).save(tmp_path / "audit", appendix=False, summary=True)
    assert not (tmp_path / "audit").exists()
