"""`mole export-layer`: the first layer of a network, for the data provider."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.options import ClassesOption, ForceOption, JsonOption, SignOption, parse_shape
from mole.cli.terminal import CallError, check_input, check_output, say, show, signing_key
from mole.exchange.layer_files import save
from mole.exchange.signatures import SUFFIX, sign_layer
from mole.scheme.augmented import too_large
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import element_count, shape_text

LARGEST = 1 << 16


def export_layer(
    model: Annotated[
        str,
        typer.Argument(
            help="module:factory, a built-in network, or a file of weights (.safetensors, .pt, .pth)."
        ),
    ],
    input_shape: Annotated[str, typer.Option(help="Shape of a sample, such as 3x32x32.")],
    weights: Annotated[Path | None, typer.Option(help="Weights to load into the model.")] = None,
    tensor: Annotated[
        str | None, typer.Option(help="For a file of weights: the name of the layer's weight.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(help="Of a convolution in a file of weights.", min=1, max=LARGEST)
    ] = None,
    padding: Annotated[
        int | None, typer.Option(help="Of a convolution in a file of weights.", min=0, max=LARGEST)
    ] = None,
    mean: Annotated[
        str | None, typer.Option(help="Mean of each channel, such as 0.49,0.48,0.45; or one for all.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(help="Standard deviation of each channel; or one for all.")
    ] = None,
    classes: ClassesOption = 10,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "first-layer.safetensors"
    ),
    sign: SignOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the first layer of a trained network, for the data provider.

    A model is run once to see which layer comes first and what it does. A file of weights alone does not
    tell: there, say --stride and --padding of a convolution, and --tensor where several could be the first.
    """
    shape = parse_shape(input_shape)
    normalisation = _normalisation(mean, std, shape[0])
    is_file = Path(model).suffix.lower() in (".safetensors", ".pt", ".pth")
    _check_call(is_file, {"--tensor": tensor, "--stride": stride, "--padding": padding}, weights)
    check_output(out, force=force)
    check_input(Path(model) if is_file else weights)
    signing = signing_key(sign)
    signature = Path(f"{out}{SUFFIX}")
    check_output(signature, force=force)  # that of another layer would be removed
    from mole.torch import export, find, models, weight_files  # noqa: PLC0415  (an extra)

    if is_file:
        name, layer = weight_files.first_layer_of_file(
            Path(model), shape, tensor=tensor, stride=stride, padding=padding, normalisation=normalisation
        )
    else:
        found = find.find_first_layer(models.build_model(model, shape, classes, weights), shape)
        name, layer = f"{found.name}.weight", export.describe(found, normalisation)
    if reason := too_large(element_count(layer.input_shape), element_count(layer.output_shape)):
        say(f"mole: a first layer for {shape_text(layer.input_shape)} {reason}")
    save(layer, out)
    signature.unlink(missing_ok=True)  # of another layer that was there
    signed = (
        {}
        if signing is None
        else {"signature": str(sign_layer(out, signing)), "signed by": signing.fingerprint}
    )
    show({"layer": str(out), "tensor": name, **_facts(layer), **signed}, as_json=as_json)


def _check_call(is_file: bool, of_files: dict[str, Any], weights: Path | None) -> None:
    if is_file and weights is not None:
        raise CallError("--weights belong to a model, and a file of weights is given: leave them out")
    given = [option for option, value in of_files.items() if value is not None]
    if not is_file and given:
        raise CallError(f"{given[0]} belongs to a file of weights, and a model knows its own: leave it out")


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


def _normalisation(mean: str | None, std: str | None, channels: int) -> Normalisation | None:
    if mean is None and std is None:
        return None
    if mean is None or std is None:
        raise CallError("a normalisation needs both --mean and --std")
    try:
        means, stds = (tuple(float(number) for number in text.split(",")) for text in (mean, std))
    except ValueError:
        raise CallError("--mean and --std are numbers with commas: 0.49,0.48,0.45") from None
    return Normalisation.of_channels(means, stds, channels)
