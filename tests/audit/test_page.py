"""The audit's page in a real browser: it loads nothing, hides from nobody, prints, and runs nothing."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from audit_report import HOSTILE, made_up_delivery, made_up_plots, made_up_report
from browsers import DARK, DARK_PHONE, LIGHT, PHONE, in_a_browser, problems, sheets
from mole.audit.page import groups, render
from mole.audit.write import without_pictures


@pytest.fixture(scope="module")
def report():
    return made_up_report()


@pytest.fixture(scope="module")
def plots():
    return made_up_plots()


@pytest.fixture(scope="module")
def page_file(report, plots, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("audit") / "audit.html"
    file.write_text(render(report, plots), encoding="utf-8")
    return file


@in_a_browser
@pytest.mark.parametrize(
    "how", [LIGHT, DARK, PHONE, DARK_PHONE], ids=["light", "dark", "phone", "dark phone"]
)
def test_nothing_is_wrong_with_the_page(browser, page_file, how):
    assert problems(browser, page_file, **how) == []


FAULTS = {
    "a picture without words": ('alt="Original"', "", "axe: image-alt"),
    "a picture from elsewhere": ("<main", '<img src="https://x.invalid" alt="x"><main', "requests https:"),
    "a picture from beside": ("<main", '<img src="beside.png" alt="x"><main', "requests file:"),
    "a picture that is none": ("data:image/png;base64,iVBOR", "data:image/png;base64,AAAA", "did not load"),
    "a script": ("<main", "<script>document.title = 'x'</script><main", "says"),
    "letters hard to read": ("--soft: #4d5866", "--soft: #b9c0c8", "axe: color-contrast"),
    "a wide table": ('<div class="box"', "<div", "wider than the screen"),
    "a table nobody can scroll by key": (' tabindex="0">', ">", "axe: scrollable-region-focusable"),
}  # fmt: skip


@in_a_browser
@pytest.mark.parametrize("fault", FAULTS)
def test_that_the_test_above_can_fail(browser, page_file, tmp_path, fault):
    good, bad, message = FAULTS[fault]
    text = page_file.read_text(encoding="utf-8")
    assert good in text
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace(good, bad), encoding="utf-8")
    told = problems(browser, broken, barriers=message.startswith("axe"), **PHONE)
    assert any(message in line for line in told)


@in_a_browser
def test_it_prints_on_a4_with_every_picture_and_number(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert sheets(pdf) > 3
    assert re.search(rb"/MediaBox\s*\[0 0 59[45][.\d]* 84[12]", pdf)
    page.emulate_media(media="print")
    assert page.get_by_text("rows of the core").is_visible()  # inside of details, closed on the screen
    assert page.evaluate("getComputedStyle(document.querySelector('.pictures.row')).breakInside") == "avoid"
    tall = "[...document.querySelectorAll('details.whole')].map(d => [d.open, d.offsetHeight])"
    folded, opened = (
        [height for is_open, height in page.evaluate(tall) if is_open == one] for one in (0, 1)
    )
    assert 0 < max(folded) < min(opened)  # printed in short
    spelled = "getComputedStyle(document.querySelector('a[href^=http]'), '::after').content"
    assert "https://arxiv.org" in page.evaluate(spelled)
    page.close()


@in_a_browser
def test_it_works_without_scripts(browser, page_file, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    for verdict in report.verdicts:
        assert page.get_by_role("heading", name=verdict.who).is_visible()
    numbers = page.get_by_text("rows of the core")
    assert not numbers.is_visible()
    page.get_by_text("The numbers behind this figure").first.click()
    assert numbers.is_visible()
    context.close()


@in_a_browser
def test_headings_and_landmarks_are_in_order(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for role in ("banner", "main", "navigation", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.close()


def test_hostile_words_stay_words(report):
    text = render(report)
    assert text.count("&lt;script&gt;") >= 5
    assert "<script" not in text
    assert HOSTILE not in text
    assert "<img src=x" not in text


def test_no_identifier_is_used_twice(report, plots):
    text = render(report, plots)
    names = re.findall(r'\sid="([^"]*)"', text)
    assert sorted(names) == sorted(set(names))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(names)


def test_everything_in_the_report_is_in_the_page(report, plots):
    text = render(report, plots)
    for found in report.attacks:
        assert found.words.split(",")[0].replace("'", "&#39;") in text
    for verdict in report.verdicts:
        assert verdict.sentence in text
    pictures = sum(len(row) for found in report.attacks for row in found.pictures)
    assert text.count("<img ") == pictures + sum(len(plot.pictures) for plot in plots)
    assert "a chance of 4.8e-14" in text
    assert "64 of 64" in text


def test_what_was_not_tested_in_full_is_no_green_light_and_is_explained(report):
    half = replace(report.verdicts[1], fully_tested=False)
    text = render(replace(report, verdicts=(half,)))
    assert '<li class="verdict none">' in text
    assert '<li class="verdict good">' not in text
    assert text.count("Nothing found, not tested in full") == 3  # above, beside the attacks, in the legend
    assert '<li class="verdict good">' in render(replace(report, verdicts=(report.verdicts[1],)))


def test_a_page_of_public_images_asks_for_no_secrecy(report):
    asks = "Keep this page as private as the images"
    assert asks in render(report)
    assert asks not in render(replace(report, private=False))
    assert asks not in render(without_pictures(report))


def test_the_page_begins_with_what_it_comes_to(report):
    text = render(report)
    text = text[text.index("<body>") :]
    told = [report.headline, "clinic-2026-04", report.delivery.delivery_id, "2026-04-01", "29.1 MB in all"]
    told += [
        "Model Makers Ltd",
        "sealed for 2 recipients",
        "not signed",
        "strangers were not given these files",
    ]
    told += [verdict.sentence for verdict in report.in_order] + ["How to read this page", 'class="attack"']
    places = [text.index(words) for words in told]
    assert places[0] == min(places)
    verdicts = places[-2 - len(report.verdicts) :]
    assert verdicts == sorted(verdicts)
    assert "is not sealed" in render(replace(report, delivery=made_up_delivery(recipients=0)))


def test_the_receiver_comes_first_and_then_the_most_alarming(report):
    assert [verdict.attacker.name for verdict in report.in_order] == [
        "DEVELOPER", "OUTSIDER", "INJECTOR", "THIEF"
    ]  # fmt: skip
    assert [group.attacker.name for group in groups(report)] == [
        "DEVELOPER", "OUTSIDER", "INJECTOR", "THIEF"
    ]  # fmt: skip


def test_attacks_stand_by_how_far_they_came_whatever_order_they_ran_in(report):
    titles = ["Linking similar images", "Matching principal components", "Independent components"]
    for attacks in (report.attacks, report.attacks[::-1]):
        text = render(replace(report, attacks=attacks))
        places = [text.rindex(title) for title in titles]  # the last was not tried
        assert places == sorted(places)


def test_of_two_that_came_as_far_the_one_that_told_more_images_apart_comes_first(report):
    first = next(found for found in report.attacks if found.attack.name == "pca")

    def with_score(name: str, **score):
        attack = replace(first.attack, name=name)
        return replace(first, attack=attack, score=replace(first.score, **score))

    found = [
        with_score("fewer", reidentified=0.25, correlation=0.9),
        with_score("more", reidentified=0.5, correlation=0.1),
        with_score("as few and closer", reidentified=0.25, correlation=0.95),
    ]
    for attacks in itertools.permutations(found):
        (group,) = groups(replace(report, verdicts=(), attacks=attacks))
        assert [one.attack.name for one in group.tried] == ["more", "as few and closer", "fewer"]


def test_the_strongest_attack_is_open_and_explanations_stand_once(report, plots):
    text = render(report, plots)
    is_open = re.findall(r'<details class="whole"( open)?>.*?<h3[^>]*>([^<]*)</h3>', text, flags=re.DOTALL)
    assert [title for opened, title in is_open if opened] == [
        "Channel fingerprint and deconvolution",
        "Linking similar images",
        "Unknown kernels from the row space",
    ]
    assert [title for opened, title in is_open if not opened] == ["Matching principal components"]
    for words in ("How closely light and dark follow", "Above 30 dB is a good copy", "one chance in 1,024"):
        assert text.count(words) == 1
    assert text.index("not of this delivery") > text.index('id="costs"')
    assert "not of this delivery" not in render(report)


def test_a_page_without_pictures_has_none_anywhere(report, plots, tmp_path):
    folder = tmp_path / "bare"
    page = report.save(folder, pictures=False, summary=True)
    assert sorted(path.name for path in folder.iterdir()) == ["audit.html", "audit.json", "summary.html"]
    tags = ("<img", "<image", "<picture", "<canvas", "<object", "<iframe", "url(http", "url(data")
    for name, signs in (("audit.html", tags), ("summary.html", tags), ("audit.json", ())):
        content = (folder / name).read_text(encoding="utf-8")
        assert [sign for sign in (*signs, "data:image", "base64", "PNG") if sign in content] == [], name
    text = page.read_text(encoding="utf-8")
    assert "This page shows no image" in text
    assert "img-src" not in text
    assert text.count("<svg role=") == 2  # the paper's curves: no sample is in them
    whole = render(report, plots)
    assert "data:image/png" in whole  # the test could fail


def test_an_identifier_cannot_reach_the_style_sheet(report):
    for bad in ('"; } body { display: none } /*', "</style><script>alert(1)</script>"):
        text = render(replace(report, delivery=made_up_delivery(delivery_id=bad), date=bad))
        style = text[text.index("<style>") : text.index("</style>")]
        assert 'content: "Morphed Learning, audit";' in style
        assert "alert" not in style
    assert f"delivery {report.delivery.delivery_id}, 2026-04-01" in render(report)


def test_an_attacker_without_a_verdict_keeps_its_attacks(report):
    less = replace(report, verdicts=report.verdicts[:1])
    kept = [found.attack.name for group in groups(less) for found in (*group.tried, *group.untried)]
    assert sorted(kept) == sorted(found.attack.name for found in report.attacks)
