"""Deliveries whose augmented layer is a matrix, or two factors of one."""

import numpy as np
import pytest

import mole
from chosen_layout import about_rows
from deliveries import SHAPE, SMALL, make_key, make_layer, write_npz
from mole.errors import DeliveryError, ParameterError
from mole.exchange.verify import verify

pytestmark = about_rows  # tiles have one form


@pytest.fixture(scope="module")
def layer() -> mole.FirstLayer:
    weight = np.random.default_rng(0).normal(size=(48, 3, 3, 3)).astype(np.float32)
    return mole.FirstLayer.conv(weight, None, input_shape=SHAPE, padding=1)


def test_both_forms_verify_and_give_the_same_features(tmp_path, layer, rng):
    data = write_npz(tmp_path / "data.npz", train=20, test=0)
    kinds = {None: "factored", "factored": "factored", "dense": "dense"}
    made = {
        form: mole.deliver(data, layer, make_key(), tmp_path / str(form), layer_form=form, **SMALL).delivery
        for form in kinds
    }
    samples = rng.normal(size=(2, *SHAPE)).astype(np.float32)
    for form, delivery in made.items():
        assert all(check.holds for check in verify(delivery))
        assert delivery.layer().form == kinds[form]
    features = {form: delivery.layer().features(samples) for form, delivery in made.items()}
    assert np.allclose(features[None], features["dense"], atol=1e-4)
    files = {form: (tmp_path / str(form) / "augmented-layer.safetensors").read_bytes() for form in kinds}
    assert files[None] == files["factored"]  # the same layer has the same bytes
    assert len(files[None]) < 0.8 * len(files["dense"])
    with pytest.raises(DeliveryError):  # nobody's delivery changes its form
        mole.deliver(data, layer, make_key(), tmp_path / "dense", **SMALL)


def test_a_layer_of_few_channels_stays_what_it_was(tmp_path):
    data = write_npz(tmp_path / "data.npz", train=20, test=0)
    for name, form in (("auto", None), ("dense", "dense")):
        mole.deliver(data, make_layer(), make_key(), tmp_path / name, layer_form=form, **SMALL)
    one, other = (tmp_path / name / "augmented-layer.safetensors" for name in ("auto", "dense"))
    assert one.read_bytes() == other.read_bytes()


def test_a_form_that_cannot_be_leaves_nothing_behind(tmp_path, layer):
    data = write_npz(tmp_path / "data.npz", train=20, test=0)
    for key, form, reason in (
        (make_key(), "round", "dense or factored"),
        (make_key(tile=4), "dense", "tiles"),
    ):
        with pytest.raises(ParameterError, match=reason):
            mole.deliver(data, layer, key, tmp_path / "out", layer_form=form, **SMALL)
        assert not (tmp_path / "out").exists()
