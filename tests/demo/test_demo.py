"""The demo's parts; `make demo` runs the whole."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from browsers import DARK_PHONE, LIGHT, in_a_browser, problems

pytest.importorskip("torch")

from mole.attacks import moment_matching
from mole.demo import arms, story
from mole.errors import MoleWarning
from mole.provider.picture_sheet import CAPTION
from mole.sources.bundled import fashion_mnist


def test_the_data_that_ships_is_balanced_and_of_one_kind():
    images = fashion_mnist()
    for part, count in (("public", 300), ("private", 300), ("test", 200)):
        assert images[f"x_{part}"].shape == (10 * count, 28, 28)
        assert images[f"x_{part}"].dtype == np.uint8
        assert np.bincount(images[f"y_{part}"]).tolist() == [count] * 10
    public = {image.tobytes() for image in images["x_public"]}
    assert not [image for image in images["x_private"] if image.tobytes() in public]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The whole story with half of the images and few epochs: what it said, its result and its folder."""
    folder, images, said = tmp_path_factory.mktemp("demo"), fashion_mnist(), []
    few = {name: array[::2] if len(array) > 100 else array for name, array in images.items()}
    few["x_private"], few["y_private"] = images["x_private"][:1600], images["y_private"][:1600]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # One private image is nearly a public one. Whether it is among those looked for depends on the key.
        warnings.filterwarnings("ignore", "1 of 64 delivered images", MoleWarning)
        patch.setattr(story, "fashion_mnist", lambda: few)
        patch.setattr(arms, "EPOCHS", 2)
        patch.setattr(story, "PUBLIC_EPOCHS", 1)
        # A shorter search, as trainings are shorter. What a whole one finds is in test_moment_matching.
        patch.setattr(moment_matching, "STARTS", 1)
        patch.setattr(moment_matching, "ROUNDS", 2)
        result = story.tell(folder, seeds=1, say=said.append)
    return said, result, folder


def test_the_whole_story_in_small(told):
    said, result, folder = told
    plain, augmented, without, protected = (arm["accuracy"] for arm in result["arms"].values())
    assert augmented > plain - 0.1
    assert without < plain - 0.2
    assert [*result["arms"]][-1] == "protected: 1 bit an image"
    assert protected > 0.2  # twice what guessing gives; new noise each time
    assert any("pin down every pixel" in line for line in said)
    with Image.open(folder / "demo.png") as picture:
        assert picture.size == (CAPTION + 8 * 90, 5 * 90)


def test_what_it_reports_is_a_table_of_plain_values(told):
    _, result, folder = told
    assert list(result) == [
        "arms", "plain bytes", "delivered data bytes", "augmented layer bytes", "deliver seconds",
        "key fingerprint", "picture", "verdicts", "audit",
    ]  # fmt: skip
    assert json.loads(json.dumps(result)) == result
    assert result["picture"] == str(folder / "demo.png")
    assert result["audit"] == str(folder / "audit" / "audit.html")


def test_the_picture_hides_and_shows(told):
    """Key and attack give the first row again; morphed images, and those tried with another key, do not."""
    with Image.open(told[2] / "demo.png") as picture:
        grey = np.asarray(picture.convert("L"), np.float64)
    original, *others = np.vsplit(grey[:, CAPTION:], 5)
    likeness = [np.corrcoef(original.ravel(), row.ravel())[0, 1] for row in others]
    assert min(likeness[1], likeness[3]) > 0.95
    assert max(likeness[0], likeness[2]) < 0.6  # the frames are alike
    assert all((row[:, :CAPTION] < 128).any() for row in np.vsplit(grey, 5))  # each has a caption


def test_it_ends_with_what_attackers_can_do(told):
    said, result, _ = told
    # With all images it leaks. Half of them are at the edge of what labels and higher moments need, and the
    # key is a new one each time.
    assert result["verdicts"]["outsider"] in ("nothing found", "leaks")
    assert result["verdicts"]["curious developer"] == "broken"
    assert any("A curious developer" in line and "recovers every image" in line for line in said)


@in_a_browser
@pytest.mark.parametrize("how", [LIGHT, DARK_PHONE], ids=["light", "dark phone"])
def test_the_page_of_its_delivery(told, browser, how):
    file = Path(told[1]["audit"])
    assert problems(browser, file, **how) == []
    page = browser.new_page()
    page.goto(file.as_uri())
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    assert page.locator("img").count() > 20
    page.close()
