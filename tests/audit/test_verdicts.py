"""Verdicts follow from figures: what succeeded, what leaked, what held, what was not tried."""

import numpy as np
import pytest

from mole.attacks.tools.attack import ATTACKERS, DEVELOPER, OUTSIDER
from mole.attacks.tools.views import (
    DeliveryView,
    DeveloperView,
    InjectingView,
    NotApplicableError,
    OutsiderView,
)
from mole.audit.report import (
    BROKEN,
    FAILED,
    GAVE_UP,
    HOLDS,
    LEAKS,
    NOT_APPLICABLE,
    NOT_COMPARED,
    NOT_TRIED,
    PARTLY,
    SUCCEEDED,
    UNKNOWN,
    AttackReport,
)
from mole.audit.scoring import Score, Truth
from mole.audit.subject import Subject
from mole.audit.verdicts import status_of, verdicts_of


def report(attacker, status, **score):
    return AttackReport(
        name="a", title="An attack", attacker=attacker, source="", advice="Do something.", status=status,
        words="There was no layer.", published=None, seconds=2.4, score=score, facts={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("score", "status"),
    [
        (Score(correlation=0.9, reidentified=0.6, among=100), SUCCEEDED),
        (Score(correlation=0.9, reidentified=0.04, among=100), FAILED),
        (Score(correlation=0.1, reidentified=0.06, among=100), PARTLY),
        (Score(correlation=0.1, reidentified=0.01, among=100), FAILED),
        (Score(correlation=0.1, reidentified=0.2, among=10), FAILED),
        (Score(best_map=0.9), PARTLY),
        (Score(best_map=0.2), FAILED),
        (Score(components=(0.01, 0.9)), PARTLY),
        (Score(components=(0.01, 0.02)), FAILED),
        (Score(neighbours=0.8, distance_correlation=1.0), PARTLY),
        (Score(neighbours=0.02), FAILED),
        (Score(channels=0.0), FAILED),
    ],
)
def test_status(score, status):
    assert status_of(score) == status


def test_the_strong_can_do_what_the_weak_can():
    verdicts = verdicts_of(
        [
            report(OUTSIDER, PARTLY, components=(0.9, 0.8, 0.1)),
            report(DEVELOPER, SUCCEEDED, reidentified=1.0, among=50, correlation=1.0),
        ]
    )
    assert [verdict.attacker for verdict in verdicts] == list(ATTACKERS)
    assert [verdict.level for verdict in verdicts] == [LEAKS, LEAKS, BROKEN, BROKEN]
    assert "2 coarse features" in verdicts[0].sentence
    assert "recovers every image, in 2.4 seconds (An attack)" in verdicts[2].sentence
    assert verdicts[3].sentence.startswith("can do at least the same: recovers every image")
    assert verdicts[2].advice == "Do something."


def test_rough_images_are_called_so():
    rough = report(OUTSIDER, PARTLY, reidentified=0.99, among=256, correlation=0.7)
    assert verdicts_of([rough])[0].sentence.startswith("rebuilds rough images, in 2.4 seconds: 99 of 100")


def test_what_held_and_what_was_not_tried():
    verdicts = verdicts_of(
        [
            report(OUTSIDER, FAILED, reidentified=0.06, among=32, correlation=0.0),
            report(OUTSIDER, FAILED, reidentified=0.01, among=100, correlation=0.0),
            report(DEVELOPER, NOT_APPLICABLE),
        ]
    )
    assert verdicts[0].level == HOLDS
    assert "cannot recognise images" in verdicts[0].sentence
    assert "1.0 % of 100 were matched; chance is 1.0 %" in verdicts[0].sentence
    assert verdicts_of([report(DEVELOPER, NOT_APPLICABLE)])[2].level == UNKNOWN
    assert "There was no layer" in verdicts_of([report(DEVELOPER, NOT_APPLICABLE)])[2].sentence


def test_what_was_not_tried_is_no_comfort():
    held = report(OUTSIDER, FAILED, reidentified=0.01, among=100, correlation=0.0)
    assert verdicts_of([held])[0].level == HOLDS
    assert [verdict.level for verdict in verdicts_of([held])[1:]] == [UNKNOWN] * 3
    for missing in (NOT_TRIED, GAVE_UP):
        verdict = verdicts_of([held, report(OUTSIDER, missing)])[0]
        assert verdict.level == UNKNOWN
        assert (
            "1 attack found nothing, but 1 attack could not be tried (There was no layer)"
            in verdict.sentence
        )


def test_tried_but_not_compared():
    verdict = verdicts_of([report(OUTSIDER, NOT_APPLICABLE), report(OUTSIDER, NOT_COMPARED)])[0]
    assert (verdict.level, "no truth to compare with" in verdict.sentence) == (UNKNOWN, True)


def test_images_that_can_all_be_picked_out_are_not_hidden():
    rough = report(OUTSIDER, PARTLY, reidentified=0.95, among=256, correlation=0.7)
    assert verdicts_of([rough])[0].level == BROKEN


def test_a_view_holds_what_its_attacker_has(rng):
    from deliveries import make_key, make_layer
    from mole.provider.verbs import augment, morph

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
    from deliveries import make_key, make_layer
    from mole.provider.verbs import augment, morph

    layer, key = make_layer(), make_key()
    morphed = morph(rng.normal(size=(9, *layer.input_shape)), key)
    subject = Subject(morphed=morphed, kappa=key.kappa, layer=layer, augmented=augment(layer, key))
    with pytest.raises(NotApplicableError, match="no images left"):
        subject.view(InjectingView)
