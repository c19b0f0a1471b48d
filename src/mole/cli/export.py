"""`mole export`: a trained network as ONNX, for an inference server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.named_files import check_output
from mole.cli.options import ForceOption, IdentityOption, JsonOption, NetworkOption, QuietOption
from mole.cli.predict import developer
from mole.cli.terminal import say, show, warnings_said
from mole.exchange.checkpoint_files import read_facts
from mole.exchange.delivery import Delivery
from mole.exchange.served_model import DATATYPE, INPUT, OUTPUT, ServedFile
from mole.protection.onnx_file import onnx_package


def export(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="FILE", help="A checkpoint that `mole train` wrote.")
    ],
    network: NetworkOption = None,
    delivery: Annotated[
        str | None,
        typer.Option(
            metavar="DELIVERY",
            help="What it was trained on: the file then says what was done to images before.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "model.onnx"
    ),
    identity: IdentityOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a trained network as ONNX, with its augmented layer, for `mole serve` or another server.

    Its input is morphed data, in batches of any size, and its output the probability of each class. It is
    written only if onnxruntime gives what PyTorch gives.
    """
    check_output(out, force=force)
    onnx_package("network to serve", "export")
    read_facts(checkpoint)  # before PyTorch is loaded
    opened = None if delivery is None else Delivery.open(delivery, identity=identity)
    with warnings_said(quiet=quiet):
        made: ServedFile = developer().export_on(
            checkpoint, out, network=network, delivery=opened, overwrite=force
        )
    show(served_facts(made), as_json=as_json)
    say(f"Serve it with: mole serve {out}", quiet=quiet)


def served_facts(served: ServedFile) -> dict[str, Any]:
    """What such a file holds, for people and for JSON."""
    facts, images = served.facts, served.facts.images
    normalisation = None if images is None else images.normalisation
    return {
        "model": str(served.path),
        "network": facts.network,
        "input": INPUT,
        "output": OUTPUT,
        "input shape": facts.input_shape,
        "datatype": DATATYPE,
        "classes": facts.classes,
        "class names": facts.class_names,
        "key fingerprint": facts.key_fingerprint,
        **({"mean": normalisation.mean, "std": normalisation.std} if normalisation else {}),
        **({"front": images.front, "clip": images.clip} if images and images.front else {}),
        "bytes": served.path.stat().st_size,
        "digest": served.digest,
    }
