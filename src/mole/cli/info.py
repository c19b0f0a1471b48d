"""`mole info`: what a layer or a key holds, without showing a secret."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.augmented import AugmentedLayer
from mole.cli.output import JsonOption, show
from mole.cli.secrets import IdentityOption, PassphraseFileOption, open_key
from mole.errors import KeyFileError
from mole.files import load
from mole.keys import MorphKey
from mole.keys.age import is_age_file
from mole.keys.whitening_file import SUFFIX
from mole.layer import FirstLayer
from mole.normalisation import Normalisation


def info(
    file: Annotated[Path, typer.Argument(help="A delivery, a first layer, an augmented layer or a key.")],
    as_json: JsonOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
) -> None:
    """Show what a delivery, a layer or a key holds; of a key, its parameters and fingerprint only.

    Example: mole info first-layer.safetensors
    """
    if file.name.endswith(SUFFIX):
        raise KeyFileError(f"{file} is the second file of a key: ask for {file.name.removesuffix(SUFFIX)}")
    if file.is_dir():
        facts = _delivery_facts(file)
    elif is_age_file(file):
        facts = _key_facts(open_key(file, passphrase_file, identity))
    else:
        layer = load(file)
        facts = _first_layer_facts(layer) if isinstance(layer, FirstLayer) else _augmented_facts(layer)
    show(facts, as_json=as_json)


def _delivery_facts(folder: Path) -> dict[str, Any]:
    from mole.delivery.manifest import Manifest  # noqa: PLC0415  (loads what most calls do not need)
    from mole.files.store import LocalStore  # noqa: PLC0415

    manifest = Manifest.read(LocalStore(folder))
    return {
        "what": "delivery",
        "rows": {name: facts.rows for name, facts in manifest.splits.items()},
        "classes": manifest.classes,
        "columns": manifest.columns,
        "input shape": manifest.input_shape,
        "output shape": manifest.output_shape,
        "kappa": manifest.kappa,
        "layout": manifest.layout,
        "dtype": manifest.dtype,
        "data bytes": manifest.data_bytes,
        "key fingerprint": manifest.key_fingerprint,
        "layer fingerprint": manifest.layer_fingerprint,
        "mode": manifest.mode,
        "resize": manifest.resize,
        **_normalisation_facts(manifest.normalisation),
    }


def _key_facts(key: MorphKey) -> dict[str, Any]:
    return {
        "what": "key",
        "fingerprint": key.fingerprint,
        "input shape": key.input_shape,
        "kappa": key.kappa,
        "core": key.core,
        "layout": key.parameters.layout,
        "second file": "the key's name with .whitening" if key.parameters.whitening else None,
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
        "output shape": layer.output_shape,
        "kappa": layer.kappa,
        "layout": layer.layout,
        "bias": layer.bias is not None,
        "dtype": layer.matrix.dtype.name,
        "bytes": layer.matrix.nbytes,
        "key fingerprint": layer.key_fingerprint,
        **_normalisation_facts(layer.normalisation),
    }


def _normalisation_facts(normalisation: Normalisation | None) -> dict[str, Any]:
    if normalisation is None:
        return {"normalisation": None}
    return {"mean": normalisation.mean, "std": normalisation.std}
