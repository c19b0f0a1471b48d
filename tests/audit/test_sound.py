"""Sound without an axis of channels: delivered, verified, and audited like a picture of one row."""

import numpy as np
import pytest

import mole
from mole.attacks import cross_delivery, membership
from mole.audit.from_delivery import subject_of_delivery
from mole.audit.from_elsewhere import with_other, with_public
from mole.audit.run import audit_subject
from mole.errors import UnsupportedLayerError
from mole.sources.opening import open_source

SIDE = 80


def sound_layer(**changes) -> mole.FirstLayer:
    weight = np.random.default_rng(0).normal(size=(8, 1, 5)).astype(np.float32)
    return mole.FirstLayer.conv(weight, None, input_shape=(SIDE,), stride=2, **changes)


def test_a_delivery_of_sound(tmp_path):
    rng, key = np.random.default_rng(1), mole.MorphKey.generate((SIDE,), kappa=2, insecure_seed=bytes(32))
    sounds = rng.normal(size=(60, SIDE)).astype(np.float32)
    np.savez(tmp_path / "sounds.npz", x_train=sounds, y_train=rng.integers(0, 2, 60))
    mole.deliver(tmp_path / "sounds.npz", sound_layer(), key, tmp_path / "delivery")
    assert all(check.holds for check in mole.verify(tmp_path / "delivery"))
    augmented = mole.Delivery.open(tmp_path / "delivery").layer()
    assert augmented.input_shape == (SIDE,)
    windows = np.lib.stride_tricks.sliding_window_view(sounds, 5, axis=1)[:, ::2]
    truth = np.einsum("bnk,ck->bcn", windows, sound_layer().weight[:, 0])[:, key.channel_order(8)]
    assert np.allclose(augmented.features(mole.morph(sounds, key)), truth, atol=1e-4)
    report = mole.audit(
        tmp_path / "delivery", layer=sound_layer(), key=key, truth=tmp_path / "sounds.npz", budget=2
    )
    assert report.attacks


def test_sound_beside_public_sound_and_another_delivery(tmp_path):
    rng, key = np.random.default_rng(1), mole.MorphKey.generate((SIDE,), insecure_seed=bytes(32))
    for name, count in (("sounds", 60), ("public", 80)):
        np.savez(tmp_path / f"{name}.npz", x_train=rng.normal(size=(count, SIDE)).astype(np.float32))
    first, other = (
        mole.deliver(tmp_path / "sounds.npz", sound_layer(), key, tmp_path / name, dtype=dtype).delivery
        for name, dtype in (("first", "float32"), ("other", "float16"))
    )
    subject = subject_of_delivery(first, key=key, layer=sound_layer())
    subject = with_public(subject, first.manifest, open_source(str(tmp_path / "public.npz")))
    subject = with_other(subject, first, other, key)
    for samples in (subject.public, subject.candidates, subject.elsewhere, subject.truth.elsewhere):
        assert samples.shape[1:] == (1, SIDE)
    report = audit_subject(subject, attacks=[membership.ATTACK, cross_delivery.ATTACK])
    assert report.attacks[0].score.membership > 0.9
    assert report.attacks[1].score.linked > 0.95


def test_there_is_no_channel_to_normalise():
    with pytest.raises(UnsupportedLayerError, match="no axis of channels to normalise"):
        sound_layer(normalisation=mole.Normalisation((0.5,), (0.5,)))
