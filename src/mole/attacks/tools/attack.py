"""What an attack is, and what it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from mole.scheme.shapes import Array


class Somebody(StrEnum):
    """Somebody who attacks: a string that also knows what people call it.

    Attributes:
        label: what a page calls it.
        who: the attacker described.
    """

    label: str
    who: str

    def __new__(cls, value: str, label: str, who: str) -> Self:
        """A string that knows more than its letters."""
        member = str.__new__(cls, value)
        member._value_, member.label, member.who = value, label, who
        return member


class Attacker(Somebody):
    """Who attacks morphed images, the weakest first: each can do what the one before can.

    >>> Attacker.THIEF.value, Attacker.THIEF.label
    ('whole delivery', 'the holder of the whole delivery')
    """

    OUTSIDER = "outsider", "the outsider", "A stranger who gets only the morphed files"
    THIEF = (
        "whole delivery",
        "the holder of the whole delivery",
        "A stranger who gets the whole delivery and knows the network's architecture",
    )
    DEVELOPER = (
        "curious developer",
        "the curious developer",
        "A curious developer: the receiver, who has its own first layer as well",
    )
    INJECTOR = (
        "injecting developer",
        "the injecting developer",
        "A developer who also knows some of the images",
    )


class Reader(Somebody):
    """Who attacks protected rows, by what they want to know: all of them have the morphing undone.

    >>> Reader.FINDER.value, Reader.FINDER.label
    ('identification', 'whoever looks for the image of a row')
    """

    FINDER = (
        "identification",
        "whoever looks for the image of a row",
        "Somebody who has candidate images, and looks for the one behind a row",
    )
    ASKER = (
        "membership",
        "whoever asks for one image",
        "Somebody who has an image, and asks whether it was delivered",
    )
    REBUILDER = (
        "inversion",
        "whoever rebuilds images",
        "Somebody with similar images, who rebuilds the ones delivered",
    )
    PROFILER = (
        "property",
        "whoever asks for a property",
        "Somebody with similar images, who asks what is true of an image delivered",
    )


class UpTo(StrEnum):
    """What an attack leaves open in the images that it rebuilds."""

    EXACTLY = "nothing"
    CONTRAST = "brightness and contrast"
    COLOURS = "a mix of colours"


@dataclass(frozen=True, eq=False)
class Finding:
    """What an attack found out: whatever it can claim, for the scorer to check.

    Attributes:
        words: what it did and what it got, in one or two plain sentences.
        images: rebuilt plain images of the first rows, (k, *input_shape).
        unmorph: what undoes the morphing of any block, (..., q) to (..., q), where that was found.
        up_to: what the images leave open: nothing, brightness and contrast, or a mix of colours.
        maps: pictures that show something of the first rows, (k, how many, *grid).
        channel_order: channel c of the augmented layer is channel channel_order[c] of the first layer.
        directions: unit vectors in the space of plain samples, (c, elements) ...
        coefficients: ... and how far each row goes along each, (n, c): a coarse picture of every row.
        distances: claimed distances between the first plain samples, (k, k).
        links: rows that are claimed to be images that the attacker has, or rows of another delivery: which
            row, and which of those, (how many, 2) ...
        links_to: ... and what they are: 'public' images, or rows 'elsewhere'.
        membership: for each candidate how likely it is among the delivered images; only the order counts.
        picked: of protected rows, by the number of candidates: which of its list is picked for each row.
        picked_by_label: the same by somebody who also knows the labels of rows and candidates.
        which: for pairs of protected rows how much more likely the first image of the pair is behind the
            first row than the second, and likewise behind the second row, (how many, 2).
        has: by property: for each protected row how likely its image has it; only the order counts.
        facts: figures for the report, of types that JSON knows.
    """

    words: str
    images: Array | None = None
    unmorph: Callable[[Array], Array] | None = None
    up_to: UpTo = UpTo.EXACTLY
    maps: Array | None = None
    channel_order: npt.NDArray[np.intp] | None = None
    directions: Array | None = None
    coefficients: Array | None = None
    distances: Array | None = None
    links: npt.NDArray[np.intp] | None = None
    links_to: Literal["public", "elsewhere"] = "public"
    membership: Array | None = None
    picked: Mapping[int, npt.NDArray[np.intp]] | None = None
    picked_by_label: Mapping[int, npt.NDArray[np.intp]] | None = None
    which: Array | None = None
    has: Mapping[str, Array] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Measure(StrEnum):
    """What a provider may have done against an attack already: nobody is advised to do it again."""

    WHITENED = "a whitened core with kappa = 1"
    KAPPA_ONE = "kappa = 1"
    MANY_CHANNELS = "a first layer of 16 channels or more"
    NO_DUPLICATES = "no image twice"
    NO_LABELS = "no labels"
    SEALED = "sealed for its receiver"
    ROWS = "blocks of rows"
    PROTECTED = "a protected delivery"  # which is attacked by others than these
    TILES = "tiles"  # against nothing: they say what can be advised instead


AGAINST_THE_DEVELOPER = {
    Measure.PROTECTED: "To keep images from the developer itself, make a protected delivery, which holds "
    "noisy features instead of them (docs/protection.md)."
}


@dataclass(frozen=True)
class Attack:
    """An attack, who can try it, and what to do about it.

    Attributes:
        name: for commands and files: 'channel-fingerprint'.
        title: for people.
        attacker: who can do it.
        view: the type of view it needs.
        run: the attack; it may draw from the generator, and from nothing else.
        source: where it comes from: the paper, or this project.
        advice: what to do about it, whatever was done already; may be empty where `helps` is not.
        helps: what else to do about it, by the measure that it asks for.
    """

    name: str
    title: str
    attacker: Somebody
    view: type[Any]
    run: Callable[[Any, np.random.Generator], Finding]
    source: str
    advice: str
    helps: Mapping[Measure, str] = field(default_factory=dict)
