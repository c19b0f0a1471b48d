"""What the provider is warned of: of a source, of views, of 8 bits, and of a key that was used before."""

import warnings

from mole.errors import DeliveryError, MoleWarning, PrivacyWarning
from mole.exchange.manifest import Manifest
from mole.foreign_text import shown
from mole.provider.image_views import learning_split
from mole.provider.ledger import Ledger
from mole.provider.plan import Plan
from mole.quantities import counted, joined
from mole.sources.inspection import Inspection
from mole.sources.source import Source


def warn_of_source(source: Source, stacklevel: int = 3) -> None:
    """Say what is left out of a source, what was not used, and what its pixels may show about people."""
    if source.unread:
        warnings.warn(
            f"left out: {counted(len(source.unread), 'image file')} of a kind that cannot be read, such as "
            f"{source.unread[0]}",
            MoleWarning,
            stacklevel=stacklevel,
        )
    for remark in source.remarks:
        warnings.warn(remark, MoleWarning, stacklevel=stacklevel)
    if source.privacy_remark:
        warnings.warn(source.privacy_remark, PrivacyWarning, stacklevel=stacklevel)


def warn_of_numbers(found: Inspection, stacklevel: int = 3) -> None:
    """Say so where samples of a split have several number types: they do not come back as they were."""
    for split, numbers in found.numbers.items():
        if len(numbers) > 1:
            rarest = min(numbers.values(), key=lambda kind: kind.count)
            kinds = joined([f"{kind.count:,} of {name}" for name, kind in numbers.items()])
            warnings.warn(
                f"split '{shown(split)}' has images of several number types: {kinds}, such as "
                f"{rarest.first}. They come back as numbers from 0 to 1, not as image files: convert them "
                "to one type if you want those",
                MoleWarning,
                stacklevel=stacklevel,
            )


def warn_of_views(plan: Plan, stacklevel: int = 3) -> None:
    """Say what several views of each image cost."""
    name = learning_split(plan.sizes)
    if plan.views > 1:
        cost = "Attacks need many rows under one core, so views make them easier"
        if plan.protection is not None:
            bits = plan.views * plan.protection.certificates[name].bits
            cost = f"Their bits add up: each image tells up to {bits:.4g}"
        warnings.warn(
            f"each image of split '{shown(name)}' leaves as {plan.views} views: {plan.most_rows(name):,} "
            f"rows of {counted(plan.sizes[name], 'image')}. {cost}",
            MoleWarning,
            stacklevel=stacklevel,
        )


def warn_of_what_leaves(plan: Plan, source: Source, looked: Inspection, stacklevel: int = 4) -> None:
    """Everything that is to be said before the work begins."""
    warn_of_source(source, stacklevel)
    warn_of_numbers(looked, stacklevel)
    warn_of_views(plan, stacklevel)


def warn_of_clipping(manifest: Manifest, stacklevel: int = 3) -> None:
    """Say so where rows lost more than the ordinary tail of a distribution does."""
    if (clipped := manifest.clipped) is not None and clipped.rows:
        warnings.warn(
            f"{clipped.rows} of {manifest.rows} rows are unlike the others, and 8 bits cut them off: they "
            f"are off by more than a tenth, and values by up to {clipped.largest_error:g}; float16 would "
            "keep them, in twice the space",
            MoleWarning,
            stacklevel=stacklevel,
        )


def warn_of_front(not_numbers: int) -> None:
    """Say so where a front gave something else than numbers."""
    warnings.warn(
        f"the front gave {counted(not_numbers, 'value')} that are no finite numbers, and zero stands in "
        "their place: ask its developer whether that is meant",
        MoleWarning,
        stacklevel=4,
    )


def warn_of_resizing(ledger: Ledger, layer_fingerprint: str, resize: str | None) -> None:
    """Say so where requests are brought to size in another way than what the network learned from."""
    if (before := ledger.other_resize(layer_fingerprint, resize)) is not None:
        warnings.warn(
            f"images for this first layer were resized by '{shown(before)}' before, and now by '{resize}': "
            "a network answers best to images that were prepared like those it learned from",
            MoleWarning,
            stacklevel=3,
        )


def ask_ledger(ledger: Ledger, layer_fingerprint: str, *, is_second_allowed: bool) -> None:
    """Stop before a key is used for a second developer, and say so where a key's file was replaced."""
    if replaced := ledger.replaced_key():
        warnings.warn(
            f"{ledger.key_path} is not the key that its ledger saw last: its fingerprint was "
            f"{replaced} and is {ledger.fingerprint}",
            MoleWarning,
            stacklevel=3,
        )
    if not (others := ledger.other_layers(layer_fingerprint)):
        return
    reason = (
        f"this key was used for another first layer before, on {others[-1].date[:10]}: two developers who "
        "compare what they got learn more than each alone, so make a key for each"
    )
    if not is_second_allowed:
        raise DeliveryError(f"{reason}, or allow it", advice={"allow_second_layer": True})
    warnings.warn(reason, MoleWarning, stacklevel=3)
