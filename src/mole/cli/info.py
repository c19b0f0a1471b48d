"""`mole info`: what a file or a delivery holds, without showing a secret."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.export import served_facts
from mole.cli.named_files import secrets_for
from mole.cli.options import IdentityOption, JsonOption, PassphraseFileOption, QuietOption
from mole.cli.terminal import progress_bar, show
from mole.errors import KeyFileError
from mole.exchange.checkpoint_files import is_checkpoint, read_checkpoint
from mole.exchange.delivery import Delivery
from mole.exchange.layer_files import load
from mole.exchange.protection_words import protection_facts
from mole.exchange.recipients import recipients_in_words
from mole.exchange.served_model import is_served, read_served
from mole.exchange.signatures import check_delivery
from mole.exchange.split_roles import rows_by_split, views_by_split
from mole.protection.front_file import Front, read_front
from mole.protection.head_file import HomeHead, is_head, read_head
from mole.provider.keys import MorphKey
from mole.provider.keys.key_file import SUFFIX
from mole.provider.ledger import Ledger
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import Layout, TilesLayout
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Shape
from mole.storage.age import is_age_file
from mole.storage.locations import is_local, local_path


def info(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A delivery (a folder or a URL), a first or augmented layer, a key, a checkpoint, a "
            "front, a head or a network to serve (.onnx).",
        ),
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
) -> None:
    """Show what a delivery, a layer, a key or a checkpoint holds; of a key, nothing that is secret."""
    path = local_path(file)
    if not is_local(file) or path.is_dir():
        facts = _delivery_facts(Delivery.open(file, identity=identity))
    elif path.name.endswith(SUFFIX):
        raise KeyFileError(f"{path} is the second file of a key: ask for {path.name.removesuffix(SUFFIX)}")
    elif is_age_file(path):
        with progress_bar("Making the core", quiet=quiet) as making:
            secrets = secrets_for(path, passphrase_file, identity)
            facts = _key_facts(MorphKey.load(path, progress=making, **secrets))
    elif path.suffix.lower() == ".onnx":
        facts = _onnx_facts(path)
    elif is_checkpoint(path):
        facts = _checkpoint_facts(path)
    else:
        layer = load(path)
        facts = _first_layer_facts(layer) if isinstance(layer, FirstLayer) else _augmented_facts(layer)
    show(facts, as_json=as_json)


def _delivery_facts(delivery: Delivery) -> dict[str, Any]:
    manifest = delivery.manifest
    return {
        "what": "delivery",
        "delivery id": manifest.delivery_id,
        "sealed": delivery.is_sealed,
        "recipients": recipients_in_words(delivery),
        "signature": check_delivery(delivery),
        "rows": rows_by_split(delivery),
        **views_by_split(delivery),
        "classes": manifest.classes,
        "columns": manifest.columns,
        "input shape": manifest.input_shape,
        **_plain_facts(manifest.plain_shape),
        "output shape": manifest.output_shape,
        **_cut_facts(Layout.of(manifest.layout, manifest.input_shape, manifest.kappa)),
        "dtype": manifest.dtype,
        **({"clipped": manifest.clipped.fields()} if manifest.clipped else {}),
        **protection_facts(manifest.protection),
        "data bytes": manifest.data_bytes,
        "key fingerprint": manifest.key_fingerprint,
        "layer fingerprint": manifest.layer_fingerprint,
        "mode": manifest.mode,
        "resize": manifest.resize,
        **_normalisation_facts(manifest.normalisation),
    }


def _key_facts(key: MorphKey) -> dict[str, Any]:
    ledger = Ledger(key.fingerprint, key.path)
    entries, deliveries = ledger.entries(), ledger.deliveries()
    whitened = key.core == "whitened"
    return {
        "what": "key",
        "fingerprint": key.fingerprint,
        "input shape": key.input_shape,
        **_cut_facts(key.parameters.to_layout()),
        "core": key.core,
        **(
            {"whitening": str(key.learnt or "not told: the key is of a version before 0.6")}
            if whitened
            else {}
        ),
        "second file": "the key's name with .whitening" if whitened else None,
        "deliveries": len(deliveries),
        "rows delivered": sum(entry.rows for entry in deliveries),
        "first layers": len({entry.layer_fingerprint for entry in entries}),
        "last delivery": entries[-1].date if entries else None,
    }


def _checkpoint_facts(path: Path) -> dict[str, Any]:
    state, facts, augmented = read_checkpoint(path)
    return {
        "what": "checkpoint",
        "network": facts.network,
        "input shape": facts.input_shape,
        "classes": facts.classes,
        "class names": facts.class_names,
        "augmented layer": None if augmented is None else augmented.get("name"),
        "key fingerprint": facts.key_fingerprint,
        "tensors": len(state),
        "numbers": sum(array.size for array in state.values()),
        "bytes": sum(array.nbytes for array in state.values()),
    }


def _onnx_facts(path: Path) -> dict[str, Any]:
    """What an ONNX file holds, by what its metadata says it is."""
    if is_head(path):
        return _head_facts(read_head(path))
    if is_served(path):
        return {"what": "network to serve", **served_facts(read_served(path))}
    return _front_facts(read_front(path))


def _front_facts(front: Front) -> dict[str, Any]:
    return {
        "what": "front",
        "input shape": front.input_shape,
        "features": front.features,
        **_normalisation_facts(front.normalisation),
        "digest": front.digest,
    }


def _head_facts(home: HomeHead) -> dict[str, Any]:
    return {
        "what": "head",
        "features": home.head.weight.shape[1],
        "classes": home.head.classes,
        "class names": home.class_names,
        "clip": home.clip,
        **({"threshold": home.threshold} if home.head.classes == 2 else {}),
        "mode": home.mode,
        "resize": home.resize,
        "front": home.front,
    }


def _first_layer_facts(layer: FirstLayer) -> dict[str, Any]:
    return {
        "what": "first layer",
        "kind": layer.kind,
        "input shape": layer.input_shape,
        "output shape": layer.output_shape,
        "kernel": layer.kernel,
        "stride": layer.stride,
        "padding": layer.padding,
        "dilation": layer.dilation,
        "groups": layer.groups,
        "bias": layer.bias is not None,
        "dtype": layer.weight.dtype.name,
        **_normalisation_facts(layer.normalisation),
    }


def _augmented_facts(layer: AugmentedLayer) -> dict[str, Any]:
    return {
        "what": "augmented layer",
        "input shape": layer.input_shape,
        **_plain_facts(layer.plain_shape),
        "output shape": layer.output_shape,
        **_cut_facts(Layout.of(layer.layout, layer.input_shape, layer.kappa)),
        "form": layer.form,
        "bias": layer.bias is not None,
        "dtype": layer.dtype.name,
        "bytes": layer.nbytes,
        "key fingerprint": layer.key_fingerprint,
        **_normalisation_facts(layer.normalisation),
    }


def _plain_facts(plain_shape: Shape | None) -> dict[str, Any]:
    """The shape of images, where zeros fill their tiles."""
    return {} if plain_shape is None else {"plain shape": plain_shape}


def _cut_facts(layout: Layout) -> dict[str, Any]:
    """How samples are cut into blocks."""
    tile = {"tile": layout.tile} if isinstance(layout, TilesLayout) else {}
    return {"kappa": layout.kappa, "layout": layout.name, **tile}


def _normalisation_facts(normalisation: Normalisation | None) -> dict[str, Any]:
    if normalisation is None:
        return {"normalisation": None}
    return {"mean": normalisation.mean, "std": normalisation.std}
