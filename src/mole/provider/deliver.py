"""Make a delivery: key + first layer + source -> morphed shards, augmented layer, manifest.

    made = deliver("photos", "first-layer.safetensors", key, "delivery", dtype="int8", resize="crop")
    made.delivery.manifest.rows, made.skipped

Whatever can be told without the key is told first, all that is wrong with the data at once. Work that was
interrupted goes on where it stood (`mole.provider.place`, `mole.provider.replacing`).
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

from mole.errors import MoleWarning
from mole.exchange.delivery import Delivery
from mole.exchange.layer_files import load_first_layer
from mole.exchange.manifest import Manifest
from mole.exchange.shards import Dtype
from mole.exchange.signatures import sign_delivery
from mole.progress import Progress, no_progress
from mole.provider.class_names import asked_for, handed_over_by, what_leaves
from mole.provider.copying import refuse_copying
from mole.provider.counting import Counting
from mole.provider.delivery_maker import DeliveryMaker, Engine
from mole.provider.engines import EngineName, chosen_engine, chosen_product
from mole.provider.image_views import check_views
from mole.provider.keys import MorphKey
from mole.provider.ledger import Ledger
from mole.provider.place import claim, give_up_if_nothing_is_lost, refuse_taken
from mole.provider.plan import Plan, kept_types, prepared, refuse_other_shape
from mole.provider.protect import Protect, check_core
from mole.provider.remarks import (
    ask_ledger,
    warn_of_clipping,
    warn_of_resizing,
    warn_of_what_leaves,
)
from mole.provider.replacing import alone_at, put_in_place
from mole.provider.row_numbers import RowNumbers
from mole.provider.shard_maker import why_left_out
from mole.scheme.augmented import LayerDtype
from mole.scheme.block_product import Product
from mole.scheme.factored import LayerForm
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_sizes import refuse_too_large
from mole.sources.inspection import inspect
from mole.sources.opening import read_source
from mole.sources.preparation import Mode, Resize
from mole.sources.reading import Bits, Reading, Window
from mole.sources.source import BadSampleError, Source, without_labels
from mole.storage.identities import recipient_texts
from mole.storage.locations import absolute
from mole.storage.sealed import SealedStore
from mole.storage.signing import Signer, SigningKey, signing_key
from mole.storage.stores import Store

Address = str | os.PathLike[str]


@dataclass(frozen=True)
class Delivered:
    """A finished delivery, and what the provider should know of how it was made.

    Attributes:
        delivery: the delivery, opened.
        skipped: the samples that were left out, each with the reason.
        source_kind: what the data was read as, in a word or two.
        has_labels: whether labels leave with it.
        core: which kind of core morphed it.
        was_complete: whether it lay there finished already, so that nothing was done.
        labels_from: what gave them, if it was not the data itself: a table, or a DICOM tag.
        spent: of a protected delivery, the most bits that any of its images has given away by now, in all
            deliveries under the key.
        rows_under_key: how many rows its key has morphed by now, in all deliveries that its ledger has.
    """

    delivery: Delivery
    skipped: tuple[BadSampleError, ...]
    source_kind: str
    has_labels: bool
    core: str
    was_complete: bool = False
    labels_from: str | None = None
    spent: float | None = None
    rows_under_key: int = 0


def deliver(
    source: Address | Source,
    layer: Address | FirstLayer,
    key: MorphKey | Callable[[], MorphKey],
    out: Address | Store,
    *,
    dtype: Dtype = "float32",
    layer_dtype: LayerDtype | None = "float32",
    layer_form: LayerForm | None = None,
    mode: Mode | None = None,
    resize: Resize | None = None,
    keep: Sequence[str] = (),
    skip_bad: bool = False,
    class_names: bool | None = None,
    labels: bool | Address | None = None,
    label_column: str | None = None,
    label_tag: str | None = None,
    window: Window | None = None,
    bits: Bits = 8,
    allow_copying_layer: bool = False,
    views: int = 1,
    protect: Protect | None = None,
    rows_per_shard: int | None = None,
    engine: EngineName = "local",
    ray_address: str | None = None,
    device: str | None = None,
    recipients: Sequence[str] = (),
    sign: Signer | None = None,
    allow_second_layer: bool = False,
    replace: bool = False,
    progress: Progress = no_progress,
) -> Delivered:
    """Make a delivery, or go on with an unfinished one, and record it and its place in the key's ledger.

    Args:
        source: the provider's data: its path or URL, or an opened source.
        layer: the developer's first layer, or its file.
        key: the provider's key, or a function that opens it, called when nothing else is wrong. One that
            was never saved has its ledger in the user's folder only.
        out: where the delivery goes: a folder, a URL or a store.
        dtype: how morphed values are stored: 'float32', 'float16' or 'int8'.
        layer_dtype: how the augmented layer is stored: 'float32' or 'float16'; None to leave it out, for
            further data under a key whose augmented layer the developer has.
        layer_form: 'dense' for the paper's matrix, 'factored' for two factors of it; None for whichever has
            fewer numbers.
        mode: 'L' or 'RGB' to convert colours; None to leave them.
        resize: 'crop' or 'stretch' to bring images to the layer's size; None refuses those of another.
        keep: further columns to hand over.
        skip_bad: leave out samples that cannot be read, instead of stopping at the first.
        class_names: hand over the names of the classes; None does so unless they might be people's
            (`mole.provider.class_names`).
        labels: hand over labels, from a table if its path is given; None does so unless they are made of
            the folders of DICOM files, whose names were not asked for. Without labels no names of classes
            leave either.
        label_column: which column of the table has the labels; None for 'label'.
        label_tag: the element of DICOM headers that is the label.
        window: of DICOM files, as a centre and a width, or 'none'; None for that of each header.
        bits: of DICOM files: 8 or 16.
        allow_copying_layer: augment a layer even if it copies pixels (`mole.provider.copying`).
        views: how many views of each image leave, of the split that is learned from: the image itself, and
            others that are shifted and mirrored (`mole.provider.image_views`), each as a row of its own.
        protect: hand over noisy features instead of images, with a bound on what each row tells
            (`mole.provider.protect.Protect`); the first layer is then one on features.
        rows_per_shard: rows in a shard, at most; None for about 64 MB of 32-bit values.
        engine: what writes the shards: 'local' for this machine, 'ray' for the machines of a Ray cluster.
        ray_address: of a running cluster, as host:port, which gets the key; None for a Ray of its own on
            this machine.
        device: where this machine multiplies, as PyTorch names it ('cuda'), which has to be installed; None
            for the processor, without PyTorch.
        recipients: seal the delivery for these age recipients (age1..., or SSH public keys).
        sign: an Ed25519 key of OpenSSH's, its file, or a function that opens it, to sign the manifest with,
            which has every digest.
        allow_second_layer: use the key for this first layer though it was used for another one before.
        replace: let it take the place of another delivery, which on a disk stays until this one is
            complete. Nothing but a delivery is ever replaced.
        progress: called with the rows done and the rows to do.

    Warns:
        MoleWarning: if the key is used for a second first layer, its file holds another key than before,
            files are left out, images have several number types or leave as several views, names of
            classes stay, 8 bits cut values off, a front gives something else than numbers, or
            the ledger cannot be written in one of its places.
        PrivacyWarning: if text may be burned into the pixels of DICOM files.

    Raises:
        DeliveryError: if the key was used for another first layer before and that is not allowed,
            something else lies there, somebody else writes there, or the result would be of no use.
        ParameterError: if the layer copies pixels, or an option cannot be used.
        SourceError: if samples cannot be used, with everything that is wrong with them, unless skip_bad.
    """
    sealed_for = recipient_texts(recipients)
    first = load_first_layer(layer)
    front = None if protect is None else protect.front_for(first, engine)
    if front is None and layer_dtype is not None and not allow_copying_layer:
        refuse_copying(first, "the first layer" if isinstance(layer, FirstLayer) else os.fspath(layer))
    write_shards = chosen_engine(engine, ray_address, source, out)
    product = chosen_product(device, engine)
    if not replace:
        known = {"layer": first.fingerprint, "dtype": dtype, "mode": mode, "resize": resize, "views": views}
        refuse_taken(out, {**known, "keep": list(keep)})
    reading = Reading.of(labels, label_column=label_column, label_tag=label_tag, window=window, bits=bits)
    opened = read_source(source, reading)
    leaving = what_leaves(opened, class_names=class_names, labels=asked_for(labels))
    if leaving.kept:
        parameter = handed_over_by(class_names)
        warnings.warn(f"{leaving.kept}; {parameter}=True hands them over", MoleWarning, stacklevel=2)
        opened = opened if leaving.labels else without_labels(opened)
    kept_types(opened, keep)
    terms = None if protect is None or front is None else protect.terms(front, opened.splits)
    preparation = prepared(first, front, mode, resize)
    check_views(views, opened, preparation)
    looked = inspect(opened, preparation)
    looked.refuse(skip_bad=skip_bad)

    key = key if isinstance(key, MorphKey) else key()
    refuse_other_shape(key, first)
    if front is not None:
        check_core(key)
    if layer_dtype is not None:
        refuse_too_large(first, key.parameters.to_layout(), layer_dtype, layer_form)
    signing = signing_key(sign)
    ledger = Ledger(key.fingerprint, key.path)
    ask_ledger(ledger, first.fingerprint, is_second_allowed=allow_second_layer)
    if layer_dtype is None:
        warn_of_resizing(ledger, first.fingerprint, resize)
    plan = Plan(
        source=opened, key=key, layer=first, dtype=dtype, layer_dtype=layer_dtype,
        layer_form=layer_form, mode=mode, resize=resize, keep=tuple(keep), skip_bad=skip_bad,
        class_names=leaving.class_names, labels=leaving.labels,
        reading=changed(reading.for_other_processes, labels=leaving.labels),
        rows_per_shard=rows_per_shard, recipients=sealed_for, views=views, front=front, protection=terms,
        source_address=None if engine == "local" or isinstance(source, Source) else absolute(source),
    )  # fmt: skip
    counting = None if protect is None else Counting(protect, plan, opened, key, out)
    plan, counted = (plan, opened) if counting is None else (counting.plan, counting.source)
    warn_of_what_leaves(plan, opened, looked)
    spent = None if counting is None else counting.check_budget()
    made = _made(
        plan, counted, key, out, counting, replace=replace, signing=signing, product=product,
        write_shards=write_shards, progress=progress,
    )  # fmt: skip
    failures = ledger.record(
        made.delivery.manifest, [bad.name for bad in made.skipped], place=made.delivery.label,
        sealed_for=None if isinstance(out, SealedStore) else sealed_for,  # a store has its own
        was_complete=made.was_complete,
    )  # fmt: skip
    for failure in failures:
        warnings.warn(failure, MoleWarning, stacklevel=2)
    warn_of_clipping(made.delivery.manifest)
    return changed(made, spent=spent, rows_under_key=sum(one.rows for one in ledger.deliveries()))


def _made(
    plan: Plan,
    source: Source,
    key: MorphKey,
    out: Address | Store,
    counting: Counting | None,
    *,
    replace: bool,
    signing: SigningKey | None,
    product: Product,
    write_shards: Engine,
    progress: Progress,
) -> Delivered:
    """Make what is planned, alone at its place, unless it lies there finished already.

    Nothing is left of a failure before the first shard.
    """
    with alone_at(out, plan, key, replace=replace) as (place, replaced):
        store = place
        is_finished = claim(store, plan, thoroughly=replace)
        try:
            if counting is not None:
                counting.spend()
            maker = DeliveryMaker(plan, source, key, store, product)
            manifest = Manifest.read(store) if is_finished else maker.make(write_shards, progress)
            skipped = _skipped(Delivery(store, manifest), plan, source, key)
            if signing is not None:
                sign_delivery(store, signing)
        except BaseException:
            give_up_if_nothing_is_lost(store)
            if counting is not None:
                counting.forget_if_nothing_was_made(store)
            raise
        if replaced is not None:
            store = put_in_place(replaced, plan, key)
    return Delivered(
        Delivery(store, manifest), skipped, source.kind,
        has_labels=any(split.labels is not None for split in source.splits.values()),
        core=key.core, was_complete=is_finished, labels_from=source.labels_from,
    )  # fmt: skip


def _skipped(delivery: Delivery, plan: Plan, source: Source, key: MorphKey) -> tuple[BadSampleError, ...]:
    """The samples that were left out, in the order of the source, and why.

    It looks at what was delivered, so that work which was interrupted and went on later counts too.
    """
    skipped = []
    for name, facts in delivery.manifest.splits.items():
        if facts.rows < facts.most_rows:
            missing = RowNumbers.of(delivery, key, name).missing(delivery.row_ids(name))
            skipped += [why_left_out(plan, source.splits[name], sample) for sample in missing]
    return tuple(skipped)
