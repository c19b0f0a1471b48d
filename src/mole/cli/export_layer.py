"""`mole export-layer`: the first layer of a network, for the data provider."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.named_files import check_input, check_output, signing_key
from mole.cli.options import (
    ClassesOption,
    ForceOption,
    JsonOption,
    MeanOption,
    QuietOption,
    SignOption,
    StdOption,
    parse_shape,
)
from mole.cli.terminal import note, show, warn
from mole.cli.wrong_calls import CallError
from mole.exchange.layer_files import save
from mole.exchange.signatures import SUFFIX, sign_layer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_sizes import augmented_bytes, too_large
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import shape_text

LARGEST = 1 << 16

UNTRAINED = (
    "no --weights were given, so this is the first layer as {network} makes it: one that was never trained "
    "costs accuracy, because it stays as it is"
)


def export_layer(
    network: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="module:factory, a built-in network, or a file of weights (.safetensors, .pt, .pth).",
        ),
    ],
    input_shape: Annotated[
        str, typer.Option(metavar="SHAPE", help="Shape of a sample, channels first, such as 3x32x32.")
    ],
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to load into the network.")
    ] = None,
    tensor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For a file of weights: the name of the layer's weight."),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="For a file of weights: the convolution's stride.", min=1, max=LARGEST
        ),
    ] = None,
    padding: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="For a file of weights: the convolution's padding.", min=0, max=LARGEST
        ),
    ] = None,
    mean: MeanOption = None,
    std: StdOption = None,
    classes: ClassesOption = 10,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "first-layer.safetensors"
    ),
    sign: SignOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the first layer of a trained network, for the data provider.

    The network is run once to see which layer comes first and what it does. A file of weights does not
    say enough: add --stride and --padding for a convolution, and --tensor where several could be the first.
    """
    shape = parse_shape(input_shape)
    normalisation = parse_normalisation(mean, std, shape[0])
    is_file = Path(network).suffix.lower() in (".safetensors", ".pt", ".pth")
    _check_call(is_file, {"--tensor": tensor, "--stride": stride, "--padding": padding}, weights)
    check_output(out, force=force)
    check_input(Path(network) if is_file else weights)
    signing = signing_key(sign)
    signature = Path(f"{out}{SUFFIX}")
    check_output(signature, force=force)  # that of another layer would be removed
    from mole.torch import export, find, models, weight_files  # noqa: PLC0415  (an extra)

    if is_file:
        name, layer = weight_files.first_layer_of_file(
            Path(network), shape, tensor=tensor, stride=stride, padding=padding, normalisation=normalisation
        )
    else:
        found = find.find_first_layer(models.build_model(network, shape, classes, weights), shape)
        name, layer = f"{found.name}.weight", export.describe(found, normalisation)
    if reason := too_large(augmented_bytes(layer)):
        warn(
            f"a first layer for {shape_text(layer.input_shape)} needs a key with tiles: {reason}",
            quiet=quiet,
        )
    save(layer, out)
    signature.unlink(missing_ok=True)  # of another layer that was there
    signed = (
        {}
        if signing is None
        else {"signature": str(sign_layer(out, signing)), "signed by": signing.fingerprint}
    )
    if not is_file and weights is None and len(shape) > 1:  # a layer on features need not be trained
        note(UNTRAINED.format(network=network), quiet=quiet)
    show({"layer": str(out), "tensor": name, **_facts(layer), **signed}, as_json=as_json)


def _check_call(is_file: bool, of_files: dict[str, Any], weights: Path | None) -> None:
    if is_file and weights is not None:
        raise CallError(
            "--weights is for a network in code, and --network is a file of weights already: leave it out"
        )
    given = [option for option, value in of_files.items() if value is not None]
    if not is_file and given:
        raise CallError(
            f"{given[0]} is for a file of weights, and a network in code has its own: leave it out"
        )


def _facts(layer: FirstLayer) -> dict[str, Any]:
    """What the provider will be told: to be compared with what the network does."""
    facts: dict[str, Any] = {"kind": layer.kind, "output shape": layer.output_shape}
    if layer.kind != "linear":
        facts |= {
            "kernel": layer.kernel,
            "stride": layer.stride,
            "padding": layer.padding,
            "dilation": layer.dilation,
            "groups": layer.groups,
        }
    return {**facts, "bias": layer.bias is not None, "normalised": layer.normalisation is not None}


def parse_normalisation(mean: str | None, std: str | None, channels: int) -> Normalisation | None:
    """A normalisation from text: both of its options, or neither."""
    if mean is None and std is None:
        return None
    if mean is None or std is None:
        raise CallError("a normalisation needs both --mean and --std")
    try:
        means, stds = (tuple(float(number) for number in text.split(",")) for text in (mean, std))
    except ValueError:
        raise CallError("--mean and --std are numbers with commas: 0.49,0.48,0.45") from None
    return Normalisation.of_channels(means, stds, channels)
