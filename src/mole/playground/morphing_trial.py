"""One picture morphed with a key that is thrown away, and attacked by everybody who could have it.

The picture is the first of a small delivery: the other images are its kind's. What each attacker gets is
decided by the audit's `Subject`, so nobody is given more here than there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

import numpy as np

from mole.analysis import Figure, LayerSizes, Setting, TileSizes, figures_of
from mole.attacks import channel_fingerprint, feature_view, known_image, pca_matching, unknown_kernels
from mole.attacks.tools.attack import Attack, Finding
from mole.attacks.tools.views import OutsiderView
from mole.audit.scoring import Score, Truth, aligned, score
from mole.audit.subject import Subject
from mole.playground.choices import MorphingChoice
from mole.playground.stock import Kind, Picture, kind_of
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.shapes import Array

# The quick ones, one for each attacker, the weakest first.
TRIED: Mapping[str, Attack] = {
    "stranger": pca_matching.ATTACK,
    "finder": unknown_kernels.ATTACK,
    "developer": channel_fingerprint.ATTACK,
    "injector": known_image.ATTACK,
}
KEPT = 8  # settings whose key and layer stay in memory: up to 50 MB each
_MAKING = Lock()


@dataclass(frozen=True, eq=False)
class Made:
    """What the provider makes with one key: the other images morphed, and the augmented layer."""

    kind: Kind
    key: MorphKey
    augmented: AugmentedLayer
    others: Array


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """What an attacker made of the picture: pixels between 0 and 1, how good they are, and how it went."""

    pixels: Array
    score: Score
    finding: Finding


def make(choice: MorphingChoice) -> Made:
    """Make a key from the operating system's randomness, and what follows; the last are kept."""
    with _MAKING:
        return _make(choice)


@lru_cache(maxsize=KEPT)
def _make(choice: MorphingChoice) -> Made:
    kind = kind_of(choice.kind)
    key = MorphKey.generate(
        kind.layer.input_shape,
        kappa=choice.kappa,
        tile=choice.tile,
        core=choice.core,
        sample=kind.private if choice.core == "whitened" else None,
    )
    return Made(kind, key, augment(kind.layer, key), key.morphing.morph(kind.private))


@dataclass(frozen=True, eq=False)
class MorphingTrial:
    """A picture in a delivery.

    Attributes:
        picture: what everybody is after.
        made: what it is delivered with.
        morphed: the picture morphed, (1, *shape).
    """

    picture: Picture
    made: Made
    morphed: Array

    @classmethod
    def of(cls, picture: Picture, choice: MorphingChoice) -> "MorphingTrial":
        """Morph a picture."""
        made = make(choice)
        return cls(picture, made, made.key.morphing.morph(picture.plain))

    @property
    def truth(self) -> Truth:
        """The picture, for the scorer."""
        return Truth(self.picture.plain, self.made.kind.layer.normalisation)

    def feature_maps(self) -> Rebuilt:
        """What the developer sees without any trick: the maps, and of them the best as a picture."""
        return self._tried(feature_view.ATTACK)

    def attacked(self, attacker: str) -> Rebuilt:
        """What one attacker rebuilds.

        Raises:
            NotApplicableError: if the attack cannot be tried here.
        """
        return self._tried(TRIED[attacker])

    def unseen(self) -> Score:
        """How good it is to draw the mean of public images, without looking at anything."""
        return score(Finding("", images=self.made.kind.mean), self.truth)

    def figures(self) -> Mapping[str, Figure]:
        """What it costs, by name."""
        layer, key = self.made.kind.layer, self.made.key
        tiles = None if key.tile is None else TileSizes.of(layer, key.tile)
        setting = Setting(layer=LayerSizes.of(layer), kappa=key.kappa, tiles=tiles)
        return {figure.name: figure for figure in figures_of(setting)}

    def _tried(self, attack: Attack) -> Rebuilt:
        rng = np.random.default_rng(
            0
        )  # the same guesses each time: only what was chosen makes a difference
        return self._scored(attack.run(self._subject(attack).view(attack.view), rng))

    def _subject(self, attack: Attack) -> Subject:
        """The delivery; but for statistics, two of its rows do: the picture, and one that may be known."""
        made, layout = self.made, self.made.key.morphing.layout
        several = attack.view is OutsiderView
        count = len(made.others) if several else 1
        plain = np.concatenate([self.picture.plain, made.kind.private[:count]])
        return Subject(
            morphed=np.concatenate([self.morphed, made.others[:count]]),
            kappa=layout.kappa, layout=layout.name, layer=made.kind.layer, augmented=made.augmented,
            public=made.kind.public if several else None,
            truth=replace(self.truth, plain=plain), core=made.key.core, private=False,
        )  # fmt: skip

    def _scored(self, finding: Finding) -> Rebuilt:
        """What was found about the picture, and nothing about other rows."""
        images = None if finding.images is None else finding.images[:1]
        maps = None if finding.maps is None else finding.maps[:1]
        own = Finding(finding.words, images=images, up_to=finding.up_to, maps=maps, facts=finding.facts)
        return Rebuilt(self.truth.pixels(aligned(own, self.truth))[0], score(own, self.truth), own)
