"""What to do: nothing that was done already, nothing that cannot be done, and not the same thing twice."""

import numpy as np
import pytest

from deliveries import make_layer
from mole.attacks import ATTACKS, linkage, membership, pca_matching
from mole.attacks.tools.attack import Attacker, Measure
from mole.attacks.tools.views import OutsiderView
from mole.audit.advice import ALL_DONE, advice_on, advice_without_findings, taken_by
from mole.audit.levels import Status
from mole.audit.report import AttackReport
from mole.audit.subject import Subject


def subject(**known):
    return Subject(**{"morphed": np.zeros((9, 3, 8, 8), np.float32), "kappa": 1} | known)


def test_a_measure_that_was_taken_is_not_advised():
    attack = linkage.ATTACK
    assert "whitened" in advice_on([attack], {Measure.NO_DUPLICATES})
    assert advice_on([attack], {Measure.WHITENED}) == "Remove duplicates before delivering."
    assert advice_on([attack], {Measure.WHITENED, Measure.NO_DUPLICATES}) == ALL_DONE


def test_what_helps_against_several_attacks_is_advised_once():
    told = advice_on([pca_matching.ATTACK, linkage.ATTACK, membership.ATTACK], set())
    assert told.count("Use a whitened core") == 1
    assert "Remove duplicates" in told
    assert "Seal the delivery" in told


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_every_attack_has_advice_that_can_be_followed(attack):
    assert attack.advice or attack.helps
    told = advice_on([attack], set())
    assert "noise" not in told  # there is no such option for morphed images
    is_developer = attack.attacker == Attacker.DEVELOPER
    assert ("a protected delivery" in told and "docs/protection.md" in told) is is_developer
    assert "core = " not in told
    assert advice_on([attack], set(Measure)) == (attack.advice or ALL_DONE)


def test_a_subject_shows_what_was_done():
    assert taken_by(subject()) == {Measure.KAPPA_ONE, Measure.NO_LABELS}
    assert Measure.WHITENED in taken_by(subject(core="whitened"))
    assert taken_by(subject(core="whitened", kappa=3)) == {Measure.NO_LABELS}
    assert Measure.SEALED in taken_by(subject(sealed=True))
    assert Measure.NO_LABELS not in taken_by(subject(labels=np.zeros(9, np.int64)))
    assert Measure.MANY_CHANNELS not in taken_by(subject(layer=make_layer()))


def test_duplicates_are_those_that_the_attack_counted(rng):
    rows = rng.normal(size=(20, 3, 8, 8)).astype(np.float32)
    for morphed, has_none in ((rows, True), (np.concatenate([rows, rows[:2]]), False)):
        finding = linkage.run(OutsiderView(morphed=morphed, kappa=1), rng)
        found = AttackReport(linkage.ATTACK, Status.PARTLY, finding.words, facts=finding.facts)
        assert (Measure.NO_DUPLICATES in taken_by(subject(), [found])) is has_none


def test_without_findings_the_audit_asks_for_what_it_lacked():
    assert "Give public images" in advice_without_findings(set(), untried=True, public=False)
    assert "Give public images" not in advice_without_findings(set(), untried=True, public=True)
    assert "seal the delivery" in advice_without_findings(set(), untried=False, public=True)
    assert "seal" not in advice_without_findings({Measure.SEALED}, untried=False, public=True)
