"""What an attack is, and what it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.views import OutsiderView
from mole.scheme.shapes import Array

OUTSIDER, THIEF = "outsider", "whole delivery"
DEVELOPER, INJECTOR = "curious developer", "injecting developer"
ATTACKERS = (OUTSIDER, THIEF, DEVELOPER, INJECTOR)

EXACTLY, CONTRAST, COLOURS = "nothing", "brightness and contrast", "a mix of colours"


@dataclass(frozen=True, eq=False)
class Finding:
    """What an attack found out: whatever it can claim, for the scorer to check.

    Attributes:
        words: what it did and what it got, in one or two plain sentences.
        images: rebuilt plain images of the first rows, (k, *input_shape).
        up_to: what the images leave open: nothing, brightness and contrast, or a mix of colours.
        maps: pictures that show something of the first rows, (k, how many, *grid).
        channel_order: channel c of the augmented layer is channel channel_order[c] of the first layer.
        directions: unit vectors in the space of plain samples, (c, elements) ...
        coefficients: ... and how far each row goes along each, (n, c): a coarse picture of every row.
        distances: claimed distances between the first plain samples, (k, k).
        facts: figures for the report, of types that JSON knows.
    """

    words: str
    images: Array | None = None
    up_to: str = EXACTLY
    maps: Array | None = None
    channel_order: npt.NDArray[np.intp] | None = None
    directions: Array | None = None
    coefficients: Array | None = None
    distances: Array | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Attack:
    """An attack, who can try it, and what to do about it.

    Attributes:
        name: for commands and files: 'channel-fingerprint'.
        title: for people.
        attacker: who can do it: one of ATTACKERS.
        view: the type of view it needs.
        run: the attack; it may draw from the generator, and from nothing else.
        source: where it comes from: the paper, or this project.
        advice: what to do about it, in one sentence.
    """

    name: str
    title: str
    attacker: str
    view: type[OutsiderView]
    run: Callable[[Any, np.random.Generator], Finding]
    source: str
    advice: str
