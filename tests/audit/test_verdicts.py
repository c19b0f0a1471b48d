"""Verdicts follow from figures: what succeeded, what leaked, what held, what was not tried."""

from dataclasses import replace

import numpy as np
import pytest

from mole.attacks.tools.attack import Attack, Attacker
from mole.attacks.tools.views import OutsiderView
from mole.audit.levels import Level, Status
from mole.audit.report import AttackReport
from mole.audit.scoring import Score, Truth
from mole.audit.subject import Subject
from mole.audit.verdicts import Tried, judged, status_of
from mole.audit.verdicts import verdicts_of as verdicts_on


def report(attacker, status, **score):
    attack = Attack("a", "An attack", attacker, OutsiderView, None, source="", advice="Do something.")
    figures = Score(**score) if score else None
    return AttackReport(attack, status, "There was no layer.", seconds=2.4, score=figures)


GIVEN = Tried(images=30_000, side=256, labels=True, public=4096)


def verdicts_of(attacks, given=GIVEN):
    return verdicts_on(attacks, given)


@pytest.mark.parametrize(
    ("score", "status"),
    [
        (Score(correlation=0.9, reidentified=0.6, among=100), Status.SUCCEEDED),
        (Score(correlation=0.9, reidentified=0.04, among=100), Status.FAILED),
        (Score(correlation=0.1, reidentified=0.06, among=100), Status.FAILED),
        (Score(correlation=0.1, reidentified=0.08, among=100), Status.PARTLY),
        (Score(correlation=0.1, reidentified=12 / 256, among=256), Status.PARTLY),
        (Score(correlation=0.1, reidentified=0.01, among=100), Status.FAILED),
        (Score(correlation=0.1, reidentified=0.2, among=10), Status.FAILED),
        (Score(best_map=0.9), Status.PARTLY),
        (Score(best_map=0.2), Status.FAILED),
        (Score(components=(0.01, 0.9)), Status.PARTLY),
        (Score(components=(0.01, 0.02)), Status.FAILED),
        (Score(neighbours=0.8, distance_correlation=1.0), Status.PARTLY),
        (Score(neighbours=0.02), Status.FAILED),
        (Score(channels=0.0), Status.FAILED),
        (Score(linked=0.9, linkable=10), Status.PARTLY),
        (Score(linked=0.1, linkable=10), Status.FAILED),
        (Score(membership=0.9), Status.PARTLY),
        (Score(membership=0.55), Status.FAILED),
    ],
)
def test_status(score, status):
    assert status_of(score) == status


def test_a_score_is_judged_and_what_has_none_stays_as_it_is():
    fresh = report(Attacker.OUTSIDER, Status.NOT_COMPARED, reidentified=1.0, among=50, correlation=1.0)
    assert judged(fresh).status == Status.SUCCEEDED
    for status in (Status.NOT_COMPARED, Status.NOT_TRIED, Status.GAVE_UP):
        assert judged(report(Attacker.OUTSIDER, status)).status == status


def test_words_are_strings_that_know_more():
    assert [level.rank for level in Level] == [0, 1, 2, 3, 4]
    assert f"{Level.BROKEN}" == Level.BROKEN == "broken"
    assert {status.tone for status in Status} == {"good", "warn", "bad", "none"}
    assert {status for status in Status if status.level != Level.UNKNOWN} == {
        "succeeded", "partly succeeded", "failed"
    }  # fmt: skip
    assert all(attacker.who and attacker.label.startswith("the ") for attacker in Attacker)


def test_an_attack_that_measured_nothing_says_nothing():
    """An order of channels, say, where nobody knows the right one: no comfort, and no alarm."""
    empty = AttackReport(report(Attacker.OUTSIDER, Status.FAILED).attack, Status.FAILED, "", score=Score())
    assert verdicts_of([empty])[0].level == Level.UNKNOWN


def test_the_strong_can_do_what_the_weak_can():
    verdicts = verdicts_of(
        [
            report(Attacker.OUTSIDER, Status.PARTLY, components=(0.9, 0.8, 0.1)),
            report(
                Attacker.DEVELOPER, Status.SUCCEEDED, reidentified=1.0, among=50, correlation=1.0, psnr=80.0
            ),
        ]
    )
    assert [verdict.attacker for verdict in verdicts] == list(Attacker)
    assert [verdict.level for verdict in verdicts] == [Level.LEAKS, Level.LEAKS, Level.BROKEN, Level.BROKEN]
    assert "2 coarse features" in verdicts[0].sentence
    assert "recovers every image, 50 of 50, in 2.4 seconds (An attack)" in verdicts[2].sentence
    assert verdicts[3].sentence.startswith("can do at least the same: recovers every image")
    assert verdicts[2].advice == "Do something."


def test_rough_images_are_called_so():
    for status, matched, fidelity, words in (
        (
            Status.PARTLY,
            253 / 256,
            12.3,
            "picks out 253 of 256 images, from rough copies (12 dB), in 2.4 sec",
        ),
        (
            Status.SUCCEEDED,
            184 / 256,
            16.9,
            "picks out 184 of 256 images, from rough copies (17 dB), in 2.4 ",
        ),
        (Status.SUCCEEDED, 184 / 256, 31.0, "recovers 184 of 256 images, in 2.4 seconds"),
    ):
        figures = {"reidentified": matched, "among": 256, "correlation": 0.85, "psnr": fidelity}
        assert verdicts_of([report(Attacker.OUTSIDER, status, **figures)])[0].sentence.startswith(words)


def test_whoever_can_do_the_same_has_copies_as_rough():
    figures = {"reidentified": 1.0, "among": 256, "correlation": 0.85}
    for fidelity, is_rough in ((16.9, True), (31.0, False)):
        own = report(Attacker.OUTSIDER, Status.SUCCEEDED, psnr=fidelity, **figures)
        assert [verdict.is_rough for verdict in verdicts_of([own])] == [is_rough] * len(Attacker)


def test_a_quick_attack_does_not_take_no_time():
    quick = replace(report(Attacker.OUTSIDER, Status.PARTLY, components=(0.9,)), seconds=0.0)
    assert verdicts_of([quick])[0].sentence.startswith(
        "learns something of the images, in less than a second"
    )


def test_an_attack_that_found_nothing_to_measure_counts_as_tried():
    """No equal rows, say: the list of attacks says that it failed, and the verdict counts it."""
    held = report(Attacker.OUTSIDER, Status.FAILED, reidentified=0.01, among=100, correlation=0.0)
    empty = replace(held, score=Score())
    assert ": 3 attacks, on 30,000 images" in verdicts_of([held, empty, empty])[0].sentence


def test_public_images_that_were_set_aside_are_told_of(rng):
    truth = Truth(rng.normal(size=(60, 1, 4, 4)), members=np.arange(14) < 7)
    subject = Subject(morphed=truth.plain, kappa=1, public=rng.normal(size=(53, 1, 4, 4)), truth=truth)
    assert "53 public images (7 more set aside as images that were not delivered)" in str(Tried.of(subject))
    assert str(Tried.of(replace(subject, truth=None))).endswith("and 53 public images")


def test_what_held_and_what_was_not_tried():
    verdicts = verdicts_of(
        [
            report(Attacker.OUTSIDER, Status.FAILED, reidentified=0.06, among=32, correlation=0.0),
            report(Attacker.OUTSIDER, Status.FAILED, reidentified=0.01, among=100, correlation=0.0),
            report(Attacker.DEVELOPER, Status.NOT_APPLICABLE),
        ]
    )
    assert verdicts[0].level == Level.NOTHING_FOUND
    assert verdicts[0].sentence.startswith(
        "no attack we tried recognised images: 2 attacks, on 30,000 images"
    )
    assert "with labels against a core of side q = 256, and 4,096 public images" in verdicts[0].sentence
    assert "(matched with their originals: 2 of 32, no more than luck gives)" in verdicts[0].sentence
    assert verdicts_of([report(Attacker.DEVELOPER, Status.NOT_APPLICABLE)])[2].level == Level.UNKNOWN
    assert (
        "There was no layer" in verdicts_of([report(Attacker.DEVELOPER, Status.NOT_APPLICABLE)])[2].sentence
    )


def test_what_was_not_tried_is_no_comfort():
    held = report(Attacker.OUTSIDER, Status.FAILED, reidentified=0.01, among=100, correlation=0.0)
    assert verdicts_of([held])[0].level == Level.NOTHING_FOUND
    assert [verdict.level for verdict in verdicts_of([held])[1:]] == [Level.UNKNOWN] * 3
    for missing in (Status.NOT_TRIED, Status.GAVE_UP):
        verdict = verdicts_of([held, report(Attacker.OUTSIDER, missing)])[0]
        assert (verdict.level, verdict.fully_tested) == (Level.NOTHING_FOUND, False)
        assert (verdict.label, verdict.tone) == ("Nothing found, not tested in full", "none")
        assert verdict.alarm == Level.UNKNOWN.alarm > verdicts_of([held])[0].alarm
        assert verdict.sentence.startswith("no attack we tried recognised images: 1 attack, on 30,000")
        assert "; 1 attack could not be tried (There was no layer)" in verdict.sentence
        assert "public`" not in verdict.sentence


def test_what_a_weaker_attacker_finds_does_not_hide_what_was_not_tested():
    leak = report(Attacker.OUTSIDER, Status.PARTLY, components=(0.9,))
    missing = [report(attacker, Status.NOT_TRIED) for attacker in list(Attacker)[1:]]
    outsider, *others = verdicts_of([leak, *missing])
    assert outsider.fully_tested
    for verdict in others:
        assert (verdict.level, verdict.fully_tested) == (Level.LEAKS, False)
        assert verdict.label == "Leaks, not tested in full"
        assert verdict.sentence == (
            f"can do at least the same: {outsider.sentence}; "
            "what more it can do was not tested: There was no layer"
        )
    held = report(Attacker.DEVELOPER, Status.FAILED, reidentified=0.01, among=100, correlation=0.0)
    for own, is_tested in ([held], True), ([held, missing[1]], False):
        verdict = verdicts_of([leak, *own])[2]
        assert (verdict.level, verdict.fully_tested) == (Level.LEAKS, is_tested)
        assert ("beyond that, no attack we tried recognised" in verdict.sentence) is not is_tested


def test_one_leak_does_not_stand_for_attacks_that_were_not_tried():
    leak = report(Attacker.OUTSIDER, Status.PARTLY, components=(0.9,))
    rough = report(Attacker.OUTSIDER, Status.PARTLY, reidentified=0.6, among=256, correlation=0.7)
    broken = report(Attacker.OUTSIDER, Status.SUCCEEDED, reidentified=1.0, among=50, correlation=1.0)
    for found, is_tested in (leak, False), (rough, False), (broken, True):  # nothing is worse than broken
        assert verdicts_of([found])[0].fully_tested
        verdict = verdicts_of([found, report(Attacker.OUTSIDER, Status.NOT_TRIED)])[0]
        assert verdict.fully_tested is is_tested
    assert not verdicts_of([])[0].fully_tested


def test_the_headline_says_what_to_give_where_there_were_no_public_images():
    bare = Tried(images=500, side=64, labels=False, public=0)
    missing = report(Attacker.OUTSIDER, Status.NOT_TRIED)
    for tried in (
        report(Attacker.OUTSIDER, Status.FAILED, reidentified=0.01, among=100, correlation=0.0),
        report(Attacker.OUTSIDER, Status.PARTLY, components=(0.9,)),
    ):
        verdict = verdicts_of([tried, missing], bare)[0]
        assert "give public images of the same kind to try them" in verdict.sentence


def test_nothing_that_was_learned_is_dropped():
    """Public images let one attack match a few images, and which images are alike is told all the same."""
    alike = replace(report(Attacker.OUTSIDER, Status.PARTLY, neighbours=1.0), seconds=0.2)
    matched = report(
        Attacker.OUTSIDER,
        Status.PARTLY,
        reidentified=0.1,
        among=256,
        correlation=0.3,
        components=(0.9, 0.7),
    )
    member = report(Attacker.OUTSIDER, Status.PARTLY, membership=0.9)
    linked = report(Attacker.OUTSIDER, Status.PARTLY, linked=0.8, linkable=1000)
    failed = report(Attacker.OUTSIDER, Status.FAILED, neighbours=0.1)
    verdict = verdicts_of([alike, failed, matched, member, linked])[0]
    assert verdict.level == Level.LEAKS
    for words in (
        "in 2.4 seconds", "which images are alike, right 100 of 100 times", "2 coarse features",
        "26 of 256, where luck gives about 1", "right 90 of 100 times, where luck gives 50", "800 of 1,000",
    ):  # fmt: skip
        assert verdict.sentence.count(words) == 1, words
    assert verdict.advice == "Do something."


def test_no_verdict_promises_anything():
    """Whatever was found, no sentence says 'cannot' or 'holds'."""
    for status, figures in (
        (Status.FAILED, {"reidentified": 0.0, "among": 100}),
        (Status.PARTLY, {"components": (0.9,)}),
        (Status.PARTLY, {"linked": 1.0, "linkable": 9}),
        (Status.PARTLY, {"membership": 0.9}),
        (Status.SUCCEEDED, {"reidentified": 1.0, "among": 100, "correlation": 1.0}),
    ):
        for verdict in verdicts_of([report(Attacker.OUTSIDER, status, **figures)]):
            told = f"{verdict.level} {verdict.sentence} {verdict.advice}"
            assert not {"cannot", "holds", "secure", "safe"} & set(told.lower().split())


def test_tried_but_not_compared():
    verdict = verdicts_of(
        [report(Attacker.OUTSIDER, Status.NOT_APPLICABLE), report(Attacker.OUTSIDER, Status.NOT_COMPARED)]
    )[0]
    assert (verdict.level, "no truth to compare with" in verdict.sentence) == (Level.UNKNOWN, True)


def test_too_few_images_are_named_as_the_reason():
    few = Tried(images=9, side=64, labels=False, public=0)
    verdict = verdicts_of([report(Attacker.OUTSIDER, Status.NOT_COMPARED)], few)[0]
    assert verdict.sentence == (
        "was not tested: what attacks found in 9 images tells nothing: audit a delivery of 16 or more"
    )


def test_images_that_can_all_be_picked_out_are_not_hidden():
    rough = report(Attacker.OUTSIDER, Status.PARTLY, reidentified=0.95, among=256, correlation=0.7)
    assert verdicts_of([rough])[0].level == Level.BROKEN
