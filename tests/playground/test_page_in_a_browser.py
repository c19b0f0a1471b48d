"""The playground's page in a real browser: every control, by keyboard, and nothing that bars anybody."""

from contextlib import contextmanager

import pytest

from browsers import DARK, DARK_PHONE, LIGHT, PHONE, barriers_of, in_a_browser, overflow
from mole.limits import MAX_UPLOAD_BYTES
from playground_site import photo, png_of

DONE = 60_000  # milliseconds, on a busy machine


@contextmanager
def visit(browser, site, **how):
    """The page in a window, when all has been worked out; and what is wrong with it by then."""
    context = browser.new_context(**how)
    page = context.new_page()
    wrong: list[str] = []
    own = (site.url, "data:image/png;base64,", "data:,")
    page.on("request", lambda one: one.url.startswith(own) or wrong.append(f"requests {one.url}"))
    page.on("console", lambda message: wrong.append(f"says {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"fails {error}"))
    page.on("dialog", lambda dialog: (wrong.append("opens a dialog"), dialog.dismiss()))
    page.goto(site.url)
    settled(page)
    yield page, wrong
    context.close()


def settled(page) -> None:
    page.get_by_text("Done: morphed in").wait_for(timeout=DONE)
    page.locator("#protected[aria-busy=false]").wait_for(timeout=DONE)


def sources(page) -> dict[str, str]:
    """Every picture that is shown of results, by where it stands."""
    places = "[...document.querySelectorAll('#results img')]"
    return dict(page.evaluate(f"{places}.map(i => [i.dataset.img || i.closest('.card').id, i.src])"))


MORPHED = {"morphed", "attacker-stranger"}
NOISY = {"row", "decoded"}


@pytest.fixture(scope="module")
def visited(browser, site):
    with visit(browser, site, **LIGHT) as (page, wrong):
        page.get_by_label("Bag").check(force=True)
        page.get_by_alt_text("Bag: the original").wait_for(timeout=DONE)
        settled(page)
        yield page, wrong


@in_a_browser
@pytest.mark.parametrize(
    ("control", "changed"),
    [
        ("picture", {"plain", "morphed", "maps", "row", "decoded", "attacker-developer"}),
        ("kappa", {"morphed"}),
        ("tiles", {"morphed"}),
        ("tile", {"morphed"}),
        ("core", MORPHED),
        ("key", {"morphed"}),
        ("bits", NOISY),
        ("noise", NOISY),
        ("upload", {"plain", "morphed", "maps", "row", "decoded", "attacker-developer"}),
        ("drop", {"plain", "morphed", "maps", "row", "decoded", "attacker-developer"}),
    ],
)
def test_every_control_changes_what_it_should_by_keyboard(visited, control, changed, tmp_path):
    """One after the other on one page, as a visitor does it; the last two bring pictures."""
    page, wrong = visited
    before = sources(page)
    text = page.inner_text("#size-text")
    file = tmp_path / "mine.png"
    file.write_bytes(photo())
    match control:
        case "picture":
            page.get_by_label("Bag").focus()
            page.keyboard.press("ArrowLeft")  # to the shirt
        case "kappa" | "tile":
            page.locator("#size").focus()
            page.keyboard.press("ArrowRight")
        case "tiles":
            page.get_by_label("Rows").focus()
            page.keyboard.press("ArrowRight")
        case "core":
            page.get_by_label("Orthogonal").focus()
            page.keyboard.press("ArrowDown")
        case "bits":
            page.locator("#bits").focus()
            page.keyboard.press("ArrowRight")
        case "key" | "noise":
            page.locator("#another" if control == "key" else "#noise").focus()
            page.keyboard.press("Enter")
        case "upload":
            page.set_input_files("#file", file)
        case "drop":
            page.evaluate(
                """(bytes) => {
                    const dataTransfer = new DataTransfer();
                    dataTransfer.items.add(new File([new Uint8Array(bytes)], "mine.bmp"));
                    document.dispatchEvent(new DragEvent("drop", { dataTransfer }));
                }""",
                [*png_of(24, 24, bytes(24 * 25))],
            )
    first = sorted(changed)[0]
    page.locator(f"[data-img={first}], #{first} img").first.wait_for()
    _until(page, lambda: sources(page)[first] != before[first])
    settled(page)
    after = sources(page)
    assert {place for place in changed if after[place] == before[place]} == set()
    if changed == NOISY:
        assert {place for place in after if after[place] != before[place]} <= {*NOISY, "picked"}
    if control in ("kappa", "tiles", "tile"):
        assert page.inner_text("#size-text") != text
        assert page.locator("#size").get_attribute("aria-valuetext") == page.inner_text("#size-text")
        assert after["plain"] == before["plain"]
    assert page.inner_text("#error") == ""
    assert wrong == []


def _until(page, holds) -> None:
    for _ in range(DONE // 50):
        if holds():
            return
        page.wait_for_timeout(50)
    pytest.fail("nothing changed")


@in_a_browser
def test_a_hostile_file_gets_a_sentence_on_the_page(visited, tmp_path):
    page, wrong = visited
    before = sources(page)
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"<script>alert(1)</script>")
    page.set_input_files("#file", bad)
    page.get_by_text("This file cannot be used: it is not an image").wait_for(timeout=DONE)
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(MAX_UPLOAD_BYTES + 1)
    page.set_input_files("#file", large)
    page.get_by_text("This is more than 33.6 MB: choose a smaller file.").wait_for(timeout=DONE)
    assert sources(page) == before
    # A refusal is a line of the browser's own console.
    assert [line for line in wrong if "status of 422" not in line] == []


@in_a_browser
@pytest.mark.parametrize(
    "how", [LIGHT, DARK, PHONE, DARK_PHONE], ids=["light", "dark", "phone", "dark phone"]
)
def test_nothing_bars_anybody_from_the_page(browser, site, how):
    with visit(browser, site, **how) as (page, wrong):
        assert "it is obfuscation, not encryption" in page.inner_text("header").lower().replace(
            "morphing", "it"
        )
        assert "The stranger gets next to nothing" in page.inner_text("#headline")
        assert page.locator("#attackers .badge.bad").count() == 3
        broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
        assert page.evaluate(broken) == 0
        assert [*wrong, *overflow(page), *barriers_of(page)] == []


@in_a_browser
def test_that_the_test_above_can_fail(browser, site):
    with visit(browser, site, **PHONE) as (page, wrong):
        page.evaluate("document.querySelector('[data-img=plain]').removeAttribute('alt')")
        page.evaluate("document.querySelector('h1').style.width = '700px'")
        page.evaluate("fetch('https://elsewhere.invalid/').catch(() => {})")
        _until(page, lambda: any("Content Security Policy" in line for line in wrong))  # nothing left
        told = " ".join([*wrong, *overflow(page), *barriers_of(page)])
        assert "axe: image-alt" in told
        assert "wider than the screen" in told
