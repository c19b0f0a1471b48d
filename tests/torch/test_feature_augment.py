"""Mixup is exact on morphed data; crops and flips of feature maps are what they are called."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import Subset

import mole
from glyphs import SHAPE, TRAINING, network
from mole.errors import ParameterError
from mole.torch import FeatureAugment, attach, augment_features, export_first_layer, mixup, train
from mole.torch.module import augmented_part

SHORT = {**TRAINING, "epochs": 2}


@pytest.mark.parametrize("cut", [{"kappa": 1}, {"kappa": 4}, {"tile": 4}])
def test_the_features_of_a_mean_are_the_mean_of_the_features(cut):
    model = network()
    first = export_first_layer(model, SHAPE, mean=[0.5], std=[0.25])
    key = mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32), **cut)
    images = np.random.default_rng(0).normal(size=(8, *SHAPE)).astype(np.float32)
    labels = torch.arange(8)
    torch.manual_seed(3)
    mixed = mixup(torch.from_numpy(mole.morph(images, key)), labels, alpha=1.0)
    assert 0.1 < mixed.share < 0.9
    means = mixed.share * images + (1 - mixed.share) * images[mixed.partners]
    # morphed means are means of morphed samples ...
    np.testing.assert_allclose(mixed.samples, mole.morph(means.astype(np.float32), key), atol=1e-5)
    # ... and their features are those of the plain means, and means of features, bias and all.
    conv = copy.deepcopy(model[0])
    attach(model, mole.augment(first, key))
    module = augmented_part(model).module
    with torch.no_grad():
        truth = conv(torch.from_numpy(means).float())[:, key.channel_order(16)]
        features = module(torch.from_numpy(mole.morph(images, key)))
        np.testing.assert_allclose(module(mixed.samples), truth, atol=1e-4)
        both = mixed.share * features + (1 - mixed.share) * features[mixed.partners]
        np.testing.assert_allclose(module(mixed.samples), both, atol=1e-4)


def test_the_loss_of_a_mixture_is_that_of_both_labels():
    torch.manual_seed(0)
    labels, logits = torch.tensor([0, 1, 2, 3]), torch.randn(4, 5)
    mixed = mixup(torch.randn(4, 3), labels, alpha=0.4)
    soft = mixed.share * torch.eye(5)[mixed.labels] + (1 - mixed.share) * torch.eye(5)[mixed.partners]
    torch.testing.assert_close(mixed.loss(logits), cross_entropy(logits, soft))
    assert mixed.main is (mixed.labels if mixed.share >= 0.5 else mixed.partners)
    assert sorted(mixed.partners.tolist()) == [0, 1, 2, 3]
    for alpha in (0, -1, float("nan")):
        with pytest.raises(ParameterError, match="alpha is"):
            mixup(torch.randn(4, 3), labels, alpha=alpha)


def test_a_training_mixes_and_says_so_to_nobody_else(setting):
    data, losses = Subset(setting.train, range(128)), {}
    for alpha, cache in ((0.0, False), (1.0, False), (1.0, True)):
        model = network()
        attach(model, setting.layer)
        state = torch.random.get_rng_state()
        history = train(model, data, mixup=alpha, cache_features=cache, **SHORT)
        assert torch.equal(torch.random.get_rng_state(), state)
        losses[alpha, cache] = [epoch.loss for epoch in history]
    assert losses[1.0, False] != losses[0.0, False]
    assert losses[1.0, True] == pytest.approx(losses[1.0, False], rel=1e-3)  # of features instead: the same
    with pytest.raises(ParameterError, match="mixup is -1"):
        train(model, data, mixup=-1, **SHORT)


def test_maps_are_shifted_and_mirrored_one_by_one():
    torch.manual_seed(0)
    features = torch.randn(40, 3, 6, 5)
    found = set()
    for one, changed in zip(features, FeatureAugment(padding=2).changed(features), strict=True):
        candidates = {
            (down, right, flipped): _moved(one, down, right, flipped)
            for down in range(-2, 3) for right in range(-2, 3) for flipped in (False, True)
        }  # fmt: skip
        (which,) = [name for name, map in candidates.items() if map.equal(changed)]
        found.add(which)
    assert len(found) > 20
    assert {flipped for *_, flipped in found} == {False, True}
    assert not FeatureAugment(padding=0).changed(features).equal(features)  # flips remain
    assert FeatureAugment(padding=0, flip=False).changed(features).equal(features)


def _moved(map, down, right, flipped):
    """By padding with the border and cutting, as PyTorch does it."""
    wide = torch.nn.functional.pad(map[None], (2, 2, 2, 2), mode="replicate")[0]
    cut = wide[:, 2 + down : 2 + down + map.shape[1], 2 + right : 2 + right + map.shape[2]]
    return cut.flip(-1) if flipped else cut


def test_a_shift_of_features_is_that_of_the_image_but_for_the_border():
    """What makes it an approximation worth having; a flip is one only as far as kernels are symmetric."""
    conv = network()[0]
    image = torch.randn(1, *SHAPE)
    with torch.no_grad():
        shifted = conv(torch.roll(image, 2, dims=-1))
        torch.testing.assert_close(shifted[..., 3:-1], conv(image)[..., 1:-3])
        assert (conv(image.flip(-1)) - conv(image).flip(-1)).abs().max() > 0.1


def test_only_a_model_that_trains_is_changed(setting):
    model = network()
    with pytest.raises(ParameterError, match="no augmented layer"):
        augment_features(model)
    attach(model, setting.layer)
    samples = torch.stack([setting.train[index][0] for index in range(4)])
    before = model.eval()(samples)
    handle = augment_features(model)
    assert torch.equal(model(samples), before)
    assert torch.equal(pickle.loads(pickle.dumps(model))(samples), before)
    module = augmented_part(model).module
    assert not torch.equal(module.train()(samples), module.eval()(samples))
    handle.remove()
    assert torch.equal(module.train()(samples), module.eval()(samples))
    with pytest.raises(ParameterError, match="padding is -1"):
        FeatureAugment(padding=-1)
    with pytest.raises(ParameterError, match=r"shape \(7,\) are not maps"):
        FeatureAugment().changed(torch.randn(2, 7))


def test_features_are_augmented_anew_in_every_epoch_though_they_are_kept(setting):
    data, seen = Subset(setting.train, range(128)), {}
    for cache in (False, True):
        model, first = network(), []
        attach(model, setting.layer)
        augment_features(model)
        augmented_part(model).module.register_forward_hook(
            lambda _m, _i, features, to=first: to.append(features)
        )
        train(model, data, cache_features=cache, **{**SHORT, "batch_size": 128})
        seen[cache] = [features for features in first if len(features) == 128]
    assert [one.equal(other) for one, other in zip(seen[False], seen[True], strict=True)] == [True, True]
    assert not seen[True][0].sort(0).values.equal(seen[True][1].sort(0).values)
