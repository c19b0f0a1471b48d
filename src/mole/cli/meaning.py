"""What a delivery means for the provider, in lines: what holds for this very one, and nothing else."""

from collections.abc import Iterator

from mole.exchange.protection_words import counted_bits, label_bits, protection_in_words
from mole.foreign_text import shown
from mole.provider.deliver import Delivered
from mole.quantities import counted, joined
from mole.scheme.shapes import element_count
from mole.sources.opening import TABLES

NO_LABELS = "no labels leave with it: nothing can be trained on it as it is"
GIVE_COLUMN = "; name the column that has them with --label-column"
GIVE_TABLE = "; give a table of them with --labels, or put the images into class folders"
NO_TEST = (
    "it has one split: whoever trains on it has no other images to test on; to set some aside, give them "
    "to a split called test (docs/sources.md, Splits)"
)


def meaning(made: Delivered) -> Iterator[str]:
    """What the receiver and a stranger can do with a delivery, what leaves with it, how to send it."""
    yield ""
    if made.delivery.manifest.protection is not None:
        yield from _protected(made)
        return
    yield from _receiver(made)
    yield from _stranger(made)
    if not made.delivery.is_sealed:
        yield "This is obfuscation, not encryption: send these files as carefully as you would the images."
    if made.has_labels:
        yield _labels(made)
    if columns := made.delivery.manifest.columns:
        names = joined([shown(one) for one in columns])
        yield f"These columns leave unchanged, for the receiver to read: {names}."


def _protected(made: Delivered) -> Iterator[str]:
    """What the certificate says, and what leaves besides."""
    delivery, manifest = made.delivery, made.delivery.manifest
    yield from protection_in_words(manifest, is_labelled=made.has_labels)
    if made.spent is not None:
        yield (
            "In all deliveries under this key so far, no image in this delivery has given away more than "
            f"{counted_bits(made.spent)}."
        )
    yield "Several images of one person, and several deliveries of one image, add up."
    if made.has_labels:
        yield _labels(made).removesuffix(".") + label_bits(manifest) + "."
    if columns := manifest.columns:
        yield f"These columns leave unchanged: {joined([shown(one) for one in columns])}."
    yield f"How many images there are leaves, too: {counted(manifest.rows, 'row')}."
    if not delivery.is_sealed:
        what = "labels and noisy rows" if made.has_labels else "noisy rows"
        yield f"The data files are not sealed: whoever gets them can read the {what}."


def about_training(made: Delivered, *, no_labels: bool, are_kept: bool) -> str | None:
    """What stands in the way of training and testing, and what the provider can do about it, if anything.

    Args:
        made: the delivery.
        no_labels: whether it was asked for without labels.
        are_kept: whether there are labels, which stay because they might tell people.
    """
    if made.has_labels:
        is_new = not made.was_complete  # it was said before
        return NO_TEST if is_new and len(made.delivery.manifest.splits) == 1 else None
    if no_labels or are_kept:
        return None if no_labels else NO_LABELS
    return NO_LABELS + (GIVE_COLUMN if made.source_kind in TABLES else GIVE_TABLE)


def _receiver(made: Delivered) -> Iterator[str]:
    opened = "open these files with its identity, and " if made.delivery.is_sealed else ""
    if not made.delivery.has_layer:
        yield f"What the receiver can do: {opened}run the network on them that it trained under this key."
        yield "What the receiver can also do, by trying: get your images back, with the layer that it has."
        return
    if made.has_labels:
        yield (
            f"What the receiver can do: {opened}train and serve a network, as well as on the images in the "
            "clear."
        )
    else:
        yield f"What the receiver can do: {opened}train a network once it has labels from elsewhere."
    yield "What the receiver can also do, by trying: get your images back. The augmented layer allows that."


def _stranger(made: Delivered) -> Iterator[str]:
    manifest = made.delivery.manifest
    if made.delivery.is_sealed:
        yield "What a stranger sees: names and sizes of files, encrypted for the recipients and your key."
        return
    if made.delivery.has_layer:
        yield (
            "What a stranger who gets the whole folder can do: look at maps of features, which often show "
            "the image, and rebuild some images by trying. Seal the delivery, or send the layer apart."
        )
    yield "What a stranger who gets only the data files sees: noise."
    if manifest.layout.endswith("tiles"):
        yield (
            "Tiles hide from the eye only: with similar images at hand, a stranger rebuilds images, as "
            f"the same core is used {manifest.kappa:,} times in each of them. Seal such a delivery."
        )
    elif manifest.kappa > 1:
        yield (
            f"With similar images at hand, a stranger may rebuild images: the same core is used "
            f"{manifest.kappa} times in each of them."
        )
    elif made.core == "whitened":
        rows = "rows" if any(split.views > 1 for split in manifest.splits.values()) else "images"
        side = counted(element_count(manifest.input_shape), "number")
        morphed = max(made.rows_under_key, manifest.rows)
        yield (
            f"With similar images at hand, a stranger may still tell some images apart: {morphed:,} {rows} "
            f"of {side} have been morphed with this core so far, and every further one makes that easier."
        )
    else:
        yield (
            "With similar images at hand, a stranger learns brightness, colours and coarse layout, and "
            f"which images are alike: the core is {made.core}, and a whitened one hides more."
        )


def _labels(made: Delivered) -> str:
    classes = made.delivery.manifest.classes
    names = f", and the names of {counted(len(classes), 'class', 'classes')}" if classes else ""
    return f"The label of each image leaves with it{names}."
