"""`mole export-head`: a trained head for plain features, to be used at home."""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.delivering import opener, signed_layer
from mole.cli.named_files import check_output
from mole.cli.options import (
    ForceOption,
    IdentityOption,
    JsonOption,
    KeyOption,
    LayerOption,
    LayerSignerOption,
    PassphraseFileOption,
    QuietOption,
)
from mole.cli.terminal import progress_bar, say, show
from mole.exchange.head_checkpoint import read_trained_head
from mole.protection.head_file import write_head
from mole.protection.onnx_file import onnx_package
from mole.provider.heads import home_head


def export_head(
    head: Annotated[
        Path, typer.Argument(metavar="FILE", help="The checkpoint that the developer's `mole train` wrote.")
    ],
    layer: LayerOption,
    key: KeyOption,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "head.onnx"
    ),
    layer_signer: LayerSignerOption = None,
    force: ForceOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn a head that the developer trained on a protected delivery into one for your own images.

    The key undoes what the first layer and the order of channels did to it. After that, predictions at
    home need no key: `mole predict photos --front front.onnx --head head.onnx`.
    """
    check_output(out, force=force)
    onnx_package("head")
    read_trained_head(head)  # before a passphrase is asked for
    first = signed_layer(layer, layer_signer)
    with progress_bar("Making the core", quiet=quiet) as making:
        made = home_head(head, first, opener(key, passphrase_file, identity, making)())
    write_head(out, made)
    show(
        {
            "head": str(out),
            "features": made.head.weight.shape[1],
            "classes": made.head.classes,
            "class names": made.class_names,
            "clip": made.clip,
            "front": made.front,
        },
        as_json=as_json,
    )
    say(
        "It was trained on noisy rows: run mole calibrate to correct its probabilities on your own images.",
        quiet=quiet,
    )
