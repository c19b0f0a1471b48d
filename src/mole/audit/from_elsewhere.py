"""What an attacker has from elsewhere: public images, images to ask about, another delivery.

A subject is what was handed over; this puts beside it what the auditor gives to play the rest of the world.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.views import Labels
from mole.audit.crop import Crop, split_crops
from mole.audit.from_delivery import as_morphed, most_rows, preparation_of
from mole.audit.scoring import Truth, same_images
from mole.audit.subject import Subject
from mole.errors import DeliveryError, SourceError
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import Manifest
from mole.provider.keys import MorphKey
from mole.scheme.shapes import Array
from mole.sources.inspection import Problem, inspect
from mole.sources.plain_samples import read_many
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Source, Split, main_split

ASKED = 128  # images of either kind: delivered, and not
AT_ONCE = 256  # images read whole, where only a part of each is kept
COMPARED = 64  # delivered images that are looked for among public ones
SAME_IMAGES = (
    "{} of {} delivered images that were looked for are among the public images given. Attackers who own "
    "what was delivered find more than others do: give other images of the same kind as public."
)
LEFT_OUT = "{:,} of {:,} public images could not be used, and were left out."
NONE_LEFT = "not one of the public images can be used: give others"
CHANGE_IT = ": bring public images to the size and colours of the delivered ones"
OTHER_KEY = "The other delivery ({}) was made with another key ({}): nothing links its rows with these."


def with_public(subject: Subject, manifest: Manifest, public: Source, *, skip_bad: bool = False) -> Subject:
    """The same subject, with other images of the same kind, as attackers may have, and their classes.

    Raises:
        MoleError: with all that is wrong, if some images cannot be used and are not skipped.
    """
    split = checked_public(public, preparation_of(manifest), skip_bad=skip_bad)
    count = min(most_rows(manifest.input_shape, subject.crop), len(split))
    chosen = np.linspace(0, len(split) - 1, count).astype(int)
    try:
        images, further, places = _read(manifest, split, chosen.tolist(), subject.crop, skip_bad=skip_bad)
    except BadSampleError as error:  # its header was good
        raise Problem(error, 1, [error.name]).error() from None
    if not places:
        raise SourceError(NONE_LEFT)
    if len(places) < count:
        left_out = LEFT_OUT.format(count - len(places), count)
        subject = replace(subject, warnings=(*subject.warnings, left_out))
    labels = None if split.labels is None else np.asarray(split.labels[chosen[places]], np.int64)
    classes = _numbered(labels, public.classes, manifest.classes)
    return with_public_images(subject, images, classes, further)


def checked_public(public: Source, preparation: Preparation, *, skip_bad: bool = False) -> Split:
    """The public images, every one of which fits by its header, or is to be skipped.

    Raises:
        MoleError: with all that is wrong.
    """
    split = main_split(public)
    looked = inspect(replace(public, splits={"public": split}, unread=()), preparation)
    problems = tuple(replace(one, first=_to_be_changed(one.first)) for one in looked.problems)
    replace(looked, problems=problems).refuse(skip_bad=skip_bad)
    return split


def _read(
    manifest: Manifest, split: Split, chosen: list[int], crop: Crop | None, *, skip_bad: bool
) -> tuple[Array, Array | None, list[int]]:
    """Plain images, and their places among those chosen; or crops of them, whole ones a few at a time."""
    preparation = preparation_of(manifest)
    if crop is None:
        plain, places, _ = read_many(preparation, split, chosen, skip_bad=skip_bad)
        return as_morphed(plain, manifest), None, places
    parts, places, count = [], [], crop.further(len(chosen))
    for start in range(0, len(chosen), AT_ONCE):
        some = read_many(preparation, split, chosen[start : start + AT_ONCE], skip_bad=skip_bad)
        parts.append(crop.several(as_morphed(some.plain, manifest), count))
        places += [start + place for place in some.places]
    return *split_crops(np.concatenate(parts)), places


def _to_be_changed(bad: BadSampleError) -> BadSampleError:
    """The same, without the advice to convert an image: an audit does to it what the delivery did."""
    return BadSampleError(bad.name, f"{bad.reason}{CHANGE_IT}") if bad.advice else bad


def with_public_images(
    subject: Subject, images: Array, labels: Labels | None = None, further: Array | None = None
) -> Subject:
    """The same, with plain images in memory. Some of them are set aside, to ask about: `candidates`.

    Args:
        subject: what was handed over.
        images: plain images from elsewhere, or crops of them.
        labels: their classes, numbered as in the subject.
        further: other crops of them, as many of each, image by image.
    """
    doubts = subject.warnings
    images = images.reshape(len(images), *subject.input_shape)  # sound may come without its channel
    if subject.truth is None:
        return replace(subject, public=images, public_labels=labels, public_further=further)
    looked_for = min(COMPARED, len(subject.truth.plain))
    there = same_images(subject.truth.plain[:looked_for], images) >= 0
    if there.any():
        doubts = (*doubts, SAME_IMAGES.format(int(there.sum()), looked_for))
    aside = min(ASKED, len(images) // 8, len(subject.truth.plain) - subject.scored)
    kept = len(images) - max(aside, 0)
    truth = replace(subject.truth, public=images[:kept])
    subject = replace(
        subject, public=images[:kept], public_labels=None if labels is None else labels[:kept],
        public_further=None if further is None else further[: kept * (len(further) // len(images))],
        truth=truth, warnings=doubts,
    )  # fmt: skip
    return _with_candidates(subject, truth, images[kept:]) if aside > 0 else subject


def with_other(subject: Subject, delivery: Delivery, other: Delivery, key: MorphKey | None) -> Subject:
    """The same subject, for attackers who also have another delivery, or requests, under the same key."""
    mine, its = delivery.manifest, other.manifest
    if its.input_shape != mine.input_shape:
        raise DeliveryError(
            f"{other.label} holds samples of a different shape from {delivery.label}: give a delivery for "
            "the same layer as the other one"
        )
    doubts = subject.warnings
    if its.key_fingerprint != mine.key_fingerprint:
        doubts = (*doubts, OTHER_KEY.format(other.label, its.key_fingerprint))
    crop = subject.crop
    rows, _ = other.first_rows(other.main_split, most_rows(its.input_shape, crop), crop)
    truth = subject.truth
    if truth is not None and key is not None and its.key_fingerprint == key.fingerprint:
        morphing = key.morphing if crop is None else crop.of_morphing(key.morphing)
        truth = replace(truth, elsewhere=morphing.arranged(morphing.unmorph(rows)))
    return replace(subject, elsewhere=rows, truth=truth, warnings=doubts)


def _with_candidates(subject: Subject, truth: Truth, strangers: Array) -> Subject:
    """Delivered images and others in a mixed order; the truth alone knows which are which."""
    members = truth.plain[subject.scored : subject.scored + len(strangers)]
    inside: npt.NDArray[np.bool_] = np.arange(2 * len(strangers)) < len(members)
    order = np.random.default_rng(0).permutation(len(inside))
    candidates = np.concatenate([members, strangers]).astype(np.float32)[order]
    return replace(subject, candidates=candidates, truth=replace(truth, members=inside[order]))


def _numbered(
    labels: Labels | None, names: tuple[str, ...] | None, delivered: tuple[str, ...] | None
) -> Labels | None:
    """Labels numbered as in the delivery, by the names of classes where both sides name them.

    A class that was not delivered gets a number of its own.
    """
    if labels is None or names is None:
        return labels
    without = labels[(labels < 0) | (labels >= len(names))]
    if len(without):
        raise SourceError(
            f"the public images have a label {without[0]}, and names of {len(names)} classes: give each "
            "label a name, counted from 0, or leave the names out"
        )
    if delivered is None or tuple(names) == tuple(delivered):
        return labels
    known = {name: number for number, name in enumerate(delivered)}
    numbers = [known.get(name, len(delivered) + place) for place, name in enumerate(names)]
    return np.asarray(numbers, np.int64)[labels]
