"""The demo's parts; `make demo` runs the whole."""

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

from mole.demo import story


def test_the_data_that_ships_is_balanced_and_of_one_kind():
    images = story.load_images()
    for part, count in (("public", 300), ("private", 300), ("test", 200)):
        assert images[f"x_{part}"].shape == (10 * count, 28, 28)
        assert images[f"x_{part}"].dtype == np.uint8
        assert np.bincount(images[f"y_{part}"]).tolist() == [count] * 10
    public = {image.tobytes() for image in images["x_public"]}
    assert not [image for image in images["x_private"] if image.tobytes() in public]


def test_the_whole_story_in_small(tmp_path, monkeypatch):
    images = story.load_images()
    few = {name: array[::2] if len(array) > 100 else array for name, array in images.items()}
    few["x_private"], few["y_private"] = images["x_private"][:1600], images["y_private"][:1600]
    monkeypatch.setattr(story, "load_images", lambda: few)
    monkeypatch.setattr(story, "EPOCHS", 2)
    monkeypatch.setattr(story, "PUBLIC_EPOCHS", 1)
    said: list[str] = []
    result = story.tell(tmp_path, seeds=1, say=said.append)
    plain, augmented, without = (arm["accuracy"] for arm in result["arms"].values())
    assert augmented > plain - 0.1
    assert without < plain - 0.2
    assert any("pin down every pixel" in line for line in said)
    with Image.open(tmp_path / "demo.png") as picture:
        assert picture.size == (8 * 30 * 3, 4 * 30 * 3)
