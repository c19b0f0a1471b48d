"""What the audit hands to each attacker: what it has, as a copy, and nothing of the truth."""

import numpy as np
import pytest

from deliveries import make_key, make_layer
from mole.attacks.tools.views import (
    DeliveryView,
    DeveloperView,
    InjectingView,
    NotApplicableError,
    OutsiderView,
)
from mole.audit.scoring import Truth
from mole.audit.subject import Subject
from mole.provider.keys.key import augment, morph


def test_a_view_holds_what_its_attacker_has(rng):
    layer, key = make_layer(), make_key()
    plain = rng.normal(size=(40, *layer.input_shape)).astype(np.float32)
    truth = Truth(plain, None, np.asarray(key.channel_order(layer.channels)))
    bare = Subject(morphed=morph(plain, key), kappa=key.kappa, truth=truth)
    assert isinstance(bare.view(OutsiderView), OutsiderView)
    for kind in (DeliveryView, DeveloperView, InjectingView):
        with pytest.raises(NotApplicableError, match="no augmented layer"):
            bare.view(kind)
    whole = Subject(
        morphed=bare.morphed, kappa=key.kappa, truth=truth, layer=layer, augmented=augment(layer, key)
    )
    assert not hasattr(whole.view(DeliveryView), "layer")
    injecting = whole.view(InjectingView)
    assert len(injecting.morphed) == whole.scored == 20
    assert np.array_equal(injecting.known, plain[20:])
    assert np.array_equal(injecting.known_morphed, whole.morphed[20:])
    for kind in (OutsiderView, DeliveryView, DeveloperView, InjectingView):
        view = whole.view(kind)
        with pytest.raises(ValueError, match="read-only"):
            view.morphed[0] = 0
        seen = [value for value in vars(view).values() if isinstance(value, np.ndarray)]
        assert not any(np.shares_memory(value, plain) for value in seen)


def test_known_images_need_the_truth(rng):
    layer, key = make_layer(), make_key()
    morphed = morph(rng.normal(size=(9, *layer.input_shape)), key)
    subject = Subject(morphed=morphed, kappa=key.kappa, layer=layer, augmented=augment(layer, key))
    with pytest.raises(NotApplicableError, match="no images left"):
        subject.view(InjectingView)
