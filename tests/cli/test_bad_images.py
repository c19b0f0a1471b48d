"""Images that cannot be used, where a command only learns from them: refused at once, or left out."""

import json

import numpy as np
import pytest
from PIL import Image

from command import call, files_in, right
from grey_places import FOR_ME, KEY, LAYER, make_grey_place
from mole.provider.deliver import deliver

GOOD = 30


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Photographs of which one is empty, one too large and one damaged in the midst; and a delivery."""
    folder = tmp_path_factory.mktemp("bad")
    layer, key = make_grey_place(folder)
    draw = np.random.default_rng(1).integers
    (folder / "photos").mkdir()
    for number in range(GOOD):
        Image.fromarray(draw(0, 256, (8, 8), np.uint8)).save(folder / "photos" / f"{number:02d}.png")
    np.savez(folder / "data.npz", x_train=draw(0, 256, (60, 8, 8), np.uint8))
    deliver(folder / "data.npz", layer, key, folder / "delivery")
    (folder / "photos" / "empty.png").write_bytes(b"")
    Image.fromarray(draw(0, 256, (9, 9), np.uint8)).save(folder / "photos" / "large.png")
    content = bytearray((folder / "photos" / "00.png").read_bytes())
    content[-24] ^= 255  # within the pixels: the header is as good as ever
    (folder / "photos" / "damaged.png").write_bytes(content)
    return folder


@pytest.mark.parametrize("option", ["--data", "--public"])
def test_keygen_says_all_that_is_wrong_before_it_asks_for_a_passphrase(place, tmp_path, option):
    done = call("keygen", *LAYER, option, "photos", "--out", tmp_path / "new.key", cwd=place)
    assert (done.returncode, files_in(tmp_path)) == (1, set())
    assert "passphrase" not in done.stderr
    first, *problems = done.stderr.splitlines()
    assert first.endswith("images cannot be used, for 2 reasons:")
    assert any("empty.png" in line and line.endswith("give --skip-bad") for line in problems)
    assert any("large.png" in line and "--resize crop" in line for line in problems)


def test_keygen_learns_from_what_is_left(place, tmp_path):
    call_it = ["keygen", *LAYER, *FOR_ME, "--data", "photos", "--skip-bad", "--out"]
    done = call(*call_it, tmp_path / "new.key", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert f"learned from {GOOD} images" in json.loads(done.stdout)["whitening"]
    assert "are left out, for 2 reasons:" in done.stderr
    assert "--skip-bad" not in done.stderr  # it was given
    quiet = call(*call_it, tmp_path / "other.key", "-q", cwd=place)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_keygen_says_what_helps_where_only_the_pixels_are_damaged(place, tmp_path):
    good = tmp_path / "good"
    good.mkdir()
    for name in ("00.png", "damaged.png"):
        (good / name).write_bytes((place / "photos" / name).read_bytes())
    done = call("keygen", *LAYER, *FOR_ME, "--data", good, "--out", tmp_path / "new.key", cwd=place)
    assert done.returncode == 1
    assert "damaged.png cannot be used: " in done.stderr
    assert done.stderr.endswith("give --skip-bad\n")
    (good / "00.png").unlink()
    done = call(
        "keygen", *LAYER, *FOR_ME, "--data", good, "--skip-bad", "--out", tmp_path / "new.key", cwd=place
    )
    assert done.stderr == "mole: not one of 1 image can be used: give others\n"
    assert files_in(tmp_path) == {"good", "good/damaged.png"}


def test_an_audit_leaves_public_images_out(place, tmp_path):
    audit = ["audit", "delivery", *KEY, *LAYER, "--data", "data.npz", "--public", "photos", "--no-appendix"]
    refused = call(*audit, "--out", tmp_path / "audit", cwd=place)
    assert (refused.returncode, files_in(tmp_path)) == (1, set())
    assert "images cannot be used, for 2 reasons:" in refused.stderr
    assert "--resize" not in refused.stderr  # an audit has no such option
    change = "it is 1x9x9 and the layer takes 1x8x8: bring public images to the size and colours of"
    assert f"{change} the delivered ones, or leave it out: give --skip-bad\n" in refused.stderr
    done = call(*audit, "--skip-bad", "--budget", 1, "--out", tmp_path / "audit", cwd=place)
    assert done.returncode == 0, done.stderr
    says = f"3 of {GOOD + 3} public images could not be used, and were left out."
    assert f"mole: warning: {says}\n" in done.stderr
    assert says in json.loads((tmp_path / "audit" / "audit.json").read_text())["warnings"]
    alone = call("audit", "delivery", "--skip-bad", "--out", tmp_path / "other", cwd=place)
    assert alone.returncode == 2
    assert "--skip-bad says how --public is read" in alone.stderr


def test_a_review_that_leaves_images_out_neither_advises_it_nor_breaks_the_quiet(place, tmp_path):
    review = ["review", "photos", *LAYER, "--skip-bad", "--out"]
    right(*review, tmp_path / "one.png", cwd=place)
    told = call(*review, tmp_path / "two.png", cwd=place).stderr
    assert "mole: warning: 2 of 33 images are left out, for 2 reasons:" in told
    assert "give --resize crop" in told
    assert "--skip-bad" not in told
    quiet = call(*review, tmp_path / "three.png", "-q", cwd=place)
    assert (quiet.returncode, quiet.stderr) == (0, "")
