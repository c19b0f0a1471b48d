"""Arrays as pictures: a PNG with its caption, and the rows of pictures of an attack."""

import io
from collections.abc import Iterator, Sequence

import numpy as np

from mole.attacks.tools.attack import Attack, Finding
from mole.attacks.tools.views import DeliveryView
from mole.audit.report import Picture
from mole.audit.scoring import Truth, aligned
from mole.audit.subject import Subject
from mole.provider.picture_sheet import as_image
from mole.scheme.layouts import Layout
from mole.scheme.shapes import Array, Shape

MIN_SPREAD = 1e-12  # below this an array has one shade only
PICTURED = 3  # images of an attack


def picture(caption: str, pixels: Array) -> Picture:
    """A picture from pixels between 0 and 1, (1 or 3, height, width) or (height, width).

    >>> drawn = picture("a grey square", np.full((8, 8), 0.5))
    >>> drawn.caption, drawn.png[1:4]
    ('a grey square', b'PNG')

    Args:
        caption: what it shows; also read aloud to those who cannot see it.
        pixels: what is below 0 or above 1 is clipped.
    """
    file = io.BytesIO()
    as_image(pixels).save(file, "PNG", optimize=True)
    return Picture(caption, file.getvalue())


def stretched(values: Array) -> Array:
    """Numbers of any size as pixels: the mean becomes mid-grey, three standard deviations black or white.

    >>> stretched(np.array([-9.0, 0.0, 0.0, 9.0])).round(2).tolist()
    [0.26, 0.5, 0.5, 0.74]
    """
    spread = max(float(values.std()), MIN_SPREAD)
    pixels: Array = np.clip(0.5 + (values - values.mean()) / (6 * spread), 0, 1)
    return pixels


def can_be_shown(shape: Shape) -> bool:
    """Whether samples of this shape are grey or colour images.

    >>> can_be_shown((3, 32, 32)), can_be_shown((1, 28, 28)), can_be_shown((64,)), can_be_shown((2, 8, 8))
    (True, True, False, False)
    """
    return len(shape) == 3 and shape[0] in (1, 3)


def pictures_of(subject: Subject, attack: Attack, finding: Finding) -> tuple[tuple[Picture, ...], ...]:
    """A row for each of the first images: original, morphed, what the attacker sees, what it rebuilds.

    Args:
        subject: what was attacked.
        attack: by which attack.
        finding: what it found, about the rows that are compared and no others.
    """
    if subject.truth is None or not can_be_shown(subject.input_shape):
        return ()
    if finding.images is None and finding.maps is None:
        return ()
    count = min(PICTURED, subject.scored, len(subject.truth.plain))
    columns = list(_columns(subject, subject.truth, attack, finding, count))
    rows = tuple(
        tuple(picture(f"{caption} {index + 1}", pixels[index]) for caption, pixels in columns)
        for index in range(count)
    )
    return (*_whole_pictures(subject, finding), *rows)


def _whole_pictures(subject: Subject, finding: Finding) -> tuple[tuple[Picture, ...], ...]:
    """Where crops were attacked and a core was found: what it makes of whole images."""
    whole = subject.whole
    if whole is None or whole.truth is None or finding.unmorph is None:
        return ()
    layout = Layout.of(whole.layout, whole.input_shape, whole.kappa)
    blocks = finding.unmorph(layout.to_blocks(whole.morphed))
    rebuilt = layout.to_rows(blocks).reshape(whole.morphed.shape)
    columns = (
        ("Original", whole.truth.pixels(whole.truth.plain)),
        ("Morphed", [stretched(image) for image in whole.morphed]),
        ("What the attacker rebuilds of", whole.truth.pixels(rebuilt)),
    )
    return tuple(
        tuple(picture(f"{caption} image {index + 1}, whole", pixels[index]) for caption, pixels in columns)
        for index in range(len(rebuilt))
    )


def _columns(
    subject: Subject, truth: Truth, attack: Attack, finding: Finding, count: int
) -> Iterator[tuple[str, Sequence[Array] | Array]]:
    """What to show of the first images, each with its caption."""
    yield "Original", truth.pixels(truth.images(truth.plain[:count]))
    yield "Morphed", [stretched(image) for image in truth.cut(subject.morphed[:count])]
    maps = _maps(subject, attack, finding, count)
    if maps is not None:
        yield "What the attacker sees of", [stretched(_strongest(several)) for several in maps[:count]]
    if finding.images is not None:
        yield "What the attacker rebuilds of", truth.pixels(aligned(finding, truth)[:count])


def _maps(subject: Subject, attack: Attack, finding: Finding, count: int) -> Array | None:
    """Pictures that the attacker has anyway: the attack's own, or features for whoever has the layer."""
    maps = finding.maps
    if maps is None and subject.augmented is not None and issubclass(attack.view, DeliveryView):
        maps = subject.augmented.features(subject.morphed[:count])
    return maps if maps is not None and maps.ndim == 4 else None


def _strongest(maps: Array) -> Array:
    """The one of several maps, (how many, height, width), with most contrast, as a grey picture."""
    strongest: Array = maps[maps.reshape(len(maps), -1).std(axis=1).argmax()]
    return strongest
