"""A certificate in words, for the provider's terminal and the delivery's card."""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mole.errors import MissingExtraError
from mole.exchange.manifest import Manifest
from mole.foreign_text import listed, shown
from mole.protection.certificate import Certificate
from mole.protection.terms import Protection
from mole.quantities import at_most, joined

CANDIDATES = 1000
SINGLED_OUT = 0.5  # of rows, so many candidates given
MUCH = "{} may be too much to hide images: most of them might be picked out. Treat this delivery like them."
MOST_TIMES = 1000  # as often, that a guess is right: more of it tells nobody anything
WHOEVER = "averaged over images, whoever reads it, with the key or without"


def protection_in_words(manifest: Manifest, *, is_labelled: bool) -> Iterator[str]:
    """What a row tells at most: a sentence for each split, or one where all have the same bound.

    Then what all rows of an image tell together, where it has several.

    Args:
        manifest: the delivery's.
        is_labelled: whether labels leave as well: whoever knows them knows more than rows tell.
    """
    protection = manifest.protection
    if protection is None:
        return
    certificates, besides = protection.certificates, what_else(manifest, is_labelled=is_labelled)
    if len(set(certificates.values())) == 1:
        one = next(iter(certificates.values()))
        yield f"Each row tells {_told(one, besides)}."
    else:
        for split, one in certificates.items():
            yield f"Each row of {shown(split)} tells {_told(one, besides)}."
    for split, facts in manifest.splits.items():
        if facts.views > 1:
            bits = counted_bits(facts.views * certificates[split].bits)
            yield (
                f"Each image of {shown(split)} has {facts.views} rows: together they tell {bits} at most, "
                "and do more for a guess than one of them."
            )
    much = [split for split, one in certificates.items() if _is_much(one, manifest.splits[split].views)]
    if much:
        yield MUCH.format("That" if len(much) == len(certificates) else f"What {listed(much)} tells")


def protection_facts(protection: Protection | None) -> dict[str, Any]:
    """The bounds of each split, as numbers for a table or a program; nothing where there are none."""
    if protection is None:
        return {}
    certificates = protection.certificates
    return {
        "bits": {split: float(f"{one.bits:.6g}") for split, one in certificates.items()},
        "maximal leakage in bits": {
            split: None if one.limit is None else round(one.maximal_leakage, 6)
            for split, one in certificates.items()
        },
        "sigma": {split: float(f"{one.sigma:.6g}") for split, one in certificates.items()},
        "clip": {split: one.clip for split, one in certificates.items()},
        "front": protection.front,
    }


def counted_bits(bits: float) -> str:
    """A number of bits.

    >>> counted_bits(0.9999999999999999), counted_bits(8.0), counted_bits(0.5)
    ('1 bit', '8 bits', '0.5 bits')
    """
    text = f"{bits:.3g}"
    return f"{text} bit" if text == "1" else f"{text} bits"


def label_bits(manifest: Manifest) -> str:
    """How much a label tells at most, if it is known how many classes there are.

    >>> round(math.log2(10), 1)
    3.3
    """
    if not manifest.classes or len(manifest.classes) < 2:
        return ""
    return f"; the label tells {math.log2(len(manifest.classes)):.1f} bits more at most"


def what_else(manifest: Manifest, *, is_labelled: bool) -> str:
    """What leaves with each row besides, in words; nothing where nothing does."""
    names = [*(["label"] if is_labelled else []), *(["columns"] if manifest.columns else [])]
    return joined(names) if names else ""


def _is_much(one: Certificate, rows: int) -> bool:
    """Whether so many rows of each image may let most images be picked out.

    The mean of several rows with Gaussian noise tells all that they do, as one row with less noise would.
    """
    together = Certificate(one.features, one.clip, one.sigma / math.sqrt(rows)) if rows > 1 else one
    with suppress(MissingExtraError):
        return together.identification(CANDIDATES) > SINGLED_OUT
    return False


def _told(one: Certificate, besides: str) -> str:
    """How much a row tells on average, how often its image is picked out, and what it does for any guess.

    >>> print(_told(Certificate.for_bits(1.0, features=128), "label"))
    1 bit about its image at most besides its label, averaged over images, whoever reads it, with the key or
    without: given 1,000 candidates with the same label, nobody picks the right one more than 1.61 times in
    100, and no guess about an image is right more than 16.1 times as often with its row as with its label
    alone
    """
    beside = f" besides its {besides}" if besides else ""
    told = f"{counted_bits(one.bits)} about its image at most{beside}, {WHOEVER}"
    told += _picked(one, f" with the same {besides}" if besides else "")
    times = 2**one.maximal_leakage if one.limit is not None else math.inf
    if times > MOST_TIMES:
        return told
    return (
        f"{told}, and no guess about an image is right more than {at_most(times)} times as often with its "
        f"row as {f'with its {besides} alone' if besides else 'without'}"
    )


def _picked(one: Certificate, with_what: str) -> str:
    """How often its image is picked out of many, at most; nothing without the library that it takes."""
    try:
        share = one.identification(CANDIDATES)
    except MissingExtraError:
        return ""
    if share >= 1:
        return f" (out of {CANDIDATES:,} candidates the right one might be picked every time)"
    return (
        f": given {CANDIDATES:,} candidates{with_what}, nobody picks the right one more than "
        f"{at_most(100 * share)} times in 100"
    )
