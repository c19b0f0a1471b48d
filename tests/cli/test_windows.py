"""`--window` and `--depth` where data is compared or learned from, beside images of another kind."""

import json

import numpy as np
import pyrage
import pytest

import mole
from command import call, files_in, right

IDENTITY = pyrage.x25519.Identity.generate()
LAYER = ["--layer", "layer.safetensors"]
FOR_ME = ["--recipient", str(IDENTITY.to_public())]
KEY = ["--key", "my.key", "--identity", "identity.txt"]
WINDOW = ["--window", "20,16"]  # most pixels become white


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """DICOM files and their delivery through a narrow window, and images of another kind."""
    from dicom_files import save

    folder = tmp_path_factory.mktemp("windows")
    weight = np.random.default_rng(0).normal(size=(4, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 8, 8), padding=1)
    mole.save(layer, folder / "layer.safetensors")
    key = mole.MorphKey.generate((1, 8, 8), insecure_seed=bytes(32))
    key.save(folder / "my.key", recipients=FOR_ME[1:])
    (folder / "identity.txt").write_text(str(IDENTITY))
    draw = np.random.default_rng(1).integers
    for number in range(40):
        save(folder / "scans" / f"{number:02d}.dcm", draw(0, 256, (8, 8), np.uint8), Modality="US")
    np.savez(folder / "similar.npz", x_train=draw(0, 256, (30, 8, 8), np.uint8))
    right("deliver", "scans", *LAYER, *KEY, *WINDOW, "--out", "delivery", cwd=folder)
    return folder


def warnings_of(place, out, *options):
    audit = ["audit", "delivery", *KEY, "--data", "scans", "--no-appendix", "--budget", 1, "--out", out]
    done = call(*audit, *options, cwd=place)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "audit.json").read_text())["warnings"]


def test_an_audit_reads_the_data_as_the_delivery_did(place, tmp_path):
    apart = [one for one in warnings_of(place, tmp_path / "one") if "does not hold the images" in one]
    assert len(apart) == 1  # through the window of each header they are other images
    assert "is not read as it was then" in apart[0]
    told = warnings_of(place, tmp_path / "two", *WINDOW, "--public", "similar.npz")
    assert not [one for one in told if "does not hold the images" in one]
    deep = warnings_of(place, tmp_path / "three", *WINDOW, "--depth", "16", "--public", "scans")
    assert [one for one in deep if "are among the public images given" in one]  # these are windowed, too


def test_a_key_may_learn_from_dicom_files_and_from_others(place, tmp_path):
    keygen = ["keygen", *LAYER, *FOR_ME, "--out", tmp_path / "new.key"]
    made = right(*keygen, "--data", "scans", "--public", "similar.npz", *WINDOW, "--depth", "16", cwd=place)
    assert "learned from 70 images" in made["whitening"]


@pytest.mark.parametrize(
    ("call_of", "code", "words"),
    [
        (["keygen", *FOR_ME, "--public", "similar.npz"], 2, "there are none here: leave them out"),
        (["keygen", *FOR_ME, "--data", "similar.npz"], 1, "similar.npz holds no DICOM files"),
        (["audit", "delivery", "--public", "similar.npz"], 2, "there are none here: leave them out"),
        (["audit", "delivery"], 2, "say how --data and --public are read"),
    ],
)
def test_a_window_that_would_mean_nothing_is_refused(place, tmp_path, call_of, code, words):
    done = call(*call_of, *LAYER, *WINDOW, "--out", tmp_path / "new", cwd=place)
    assert (done.returncode, files_in(tmp_path)) == (code, set())
    assert words in done.stderr
