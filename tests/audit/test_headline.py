"""One sentence that sums up, derived from verdicts: it alarms where they do, and never promises."""

import pytest

from mole.attacks.tools.attack import Attacker
from mole.audit.headline import headline
from mole.audit.levels import Level
from mole.audit.report import Verdict

UNKNOWN, NOTHING, _, LEAKS, BROKEN = Level


def told(outsider, thief, developer, injector, **how):
    levels = zip(Attacker, (outsider, thief, developer, injector), strict=True)
    return headline([Verdict(attacker, level, "", "") for attacker, level in levels], **how)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((NOTHING, NOTHING, BROKEN, BROKEN), "like the images: its receiver can get them back."),
        (
            (NOTHING, LEAKS, BROKEN, BROKEN),
            "get them back, and anybody who gets hold of the folder learns something of them.",
        ),
        ((LEAKS, BROKEN, BROKEN, BROKEN), "get them back, and so can a stranger who gets the whole of it."),
        ((BROKEN, BROKEN, BROKEN, BROKEN), "so can a stranger who gets only the morphed files."),
        ((NOTHING, NOTHING, NOTHING, BROKEN), "a receiver who knows some of them can get the others back."),
        (
            (LEAKS, LEAKS, LEAKS, LEAKS),
            "gives something of the images away: its receiver learns it, and so does anybody",
        ),
        ((NOTHING, NOTHING, LEAKS, LEAKS), "gives something of the images away: its receiver learns it."),
        (
            (NOTHING, UNKNOWN, UNKNOWN, UNKNOWN),
            "until more is known: what its receiver can do was not tested.",
        ),
        ((NOTHING, NOTHING, NOTHING, NOTHING), "No attack we tried got at the images, which is no promise"),
        ((UNKNOWN, NOTHING, NOTHING, NOTHING), "Not tested in full: the outsider."),
    ],
)
def test_the_sentence_follows_from_the_verdicts(levels, words):
    assert words in told(*levels)
    assert told(*levels).startswith("Treat") is (BROKEN in levels or levels[2] == UNKNOWN)


def test_leaks_are_no_comfort_where_not_everything_was_tested():
    """A receiver of whom only the stranger's finding is known may do anything."""
    known = dict.fromkeys(Attacker, True)
    for untested in Attacker:
        verdicts = [
            Verdict(attacker, LEAKS, "", "", fully_tested=tested)
            for attacker, tested in (known | {untested: False}).items()
        ]
        said = headline(verdicts)
        assert "not tested in full" in said.lower()
        is_receiver = untested == Attacker.DEVELOPER
        assert said.startswith("Treat this delivery like the images until more is known") is is_receiver
        assert is_receiver or f"Not tested in full: {untested.label}." in said
    assert "not tested" not in told(LEAKS, LEAKS, LEAKS, LEAKS).lower()


def test_a_receiver_of_whom_half_the_attacks_found_nothing_is_not_known():
    verdicts = [Verdict(one, NOTHING, "", "", fully_tested=one != Attacker.DEVELOPER) for one in Attacker]
    assert headline(verdicts).endswith(
        "until more is known: what its receiver can do was not tested in full."
    )


def test_what_is_sealed_gives_strangers_nothing_in_the_clear():
    sealed = told(LEAKS, BROKEN, BROKEN, BROKEN, sealed=True)
    assert sealed.endswith("and so could a stranger who got the whole of it in the clear.")
    for receiver in (LEAKS, BROKEN):
        assert "anybody" not in told(LEAKS, LEAKS, receiver, receiver, sealed=True)


@pytest.mark.parametrize("words", ["picks out 46 of 64 images", "in other words"])
def test_rough_copies_are_not_called_the_images(words):
    """Whatever the verdicts' sentences say: they are for people."""
    for is_thief_rough, is_developer_rough, told_so in (
        (
            True,
            False,
            "get them back, and a stranger who gets the whole of it can pick most of them out.",
        ),
        (True, True, "its receiver can pick most of them out, and so can a stranger who gets the whole of"),
        (False, False, "its receiver can get them back, and so can a stranger who gets the whole of it."),
    ):
        verdicts = [
            Verdict(Attacker.THIEF, BROKEN, words, "", is_rough=is_thief_rough),
            Verdict(Attacker.DEVELOPER, BROKEN, words, "", is_rough=is_developer_rough),
        ]
        assert told_so in headline(verdicts)


def test_a_setting_is_called_one_and_nothing_at_all_is_no_comfort():
    assert told(LEAKS, LEAKS, BROKEN, BROKEN, what="setting").startswith(
        "Treat this setting like the images"
    )
    assert "was not tested" in headline([])
