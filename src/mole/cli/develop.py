"""The developer's commands: `mole export-layer`, `train` and `predict`. They load PyTorch when called."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.output import JsonOption, QuietOption, progress_bar, say, show
from mole.errors import FileError, ParameterError
from mole.geometry import Shape, check_shape
from mole.layer import FirstLayer
from mole.normalisation import Normalisation

if TYPE_CHECKING:
    from torch import nn

NetworkOption = Annotated[
    str, typer.Option(help="small_vgg, small_resnet, vgg16, or module:factory for a model of your own.")
]


def export_layer(
    model: Annotated[
        str,
        typer.Argument(
            help="module:factory, a built-in network, or a file of weights (.safetensors, .pt)."
        ),
    ],
    input_shape: Annotated[str, typer.Option(help="Shape of a sample, such as 3x32x32.")],
    weights: Annotated[Path | None, typer.Option(help="Weights to load into the model.")] = None,
    tensor: Annotated[str | None, typer.Option(help="For a file of weights: the layer's weight.")] = None,
    stride: Annotated[int, typer.Option(help="For a file of weights.", min=1)] = 1,
    padding: Annotated[int, typer.Option(help="For a file of weights.", min=0)] = 0,
    mean: Annotated[str | None, typer.Option(help="Mean of each channel, such as 0.49,0.48,0.45.")] = None,
    std: Annotated[str | None, typer.Option(help="Standard deviation of each channel.")] = None,
    classes: Annotated[int, typer.Option(help="For a network that has to know.", min=2)] = 10,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "first-layer.safetensors"
    ),
    as_json: JsonOption = False,
) -> None:
    """Write the first layer of a trained network, for the data provider.

    Example: mole export-layer networks:resnet --weights model.pt --input-shape 3x32x32
    """
    from mole.files import save  # noqa: PLC0415

    shape = parse_shape(input_shape)
    normalisation = _normalisation(mean, std)
    if Path(model).suffix in (".safetensors", ".pt", ".pth"):
        layer = _layer_of_file(Path(model), shape, tensor, stride, padding, normalisation)
    else:
        layer = _layer_of_model(model, shape, weights, classes, normalisation)
    save(layer, out)
    show({"layer": str(out), "kind": layer.kind, "output shape": layer.output_shape}, as_json=as_json)


def train(
    delivery: Annotated[str, typer.Argument(help="A delivery: a folder or a URL.")],
    network: NetworkOption = "small_vgg",
    weights: Annotated[Path | None, typer.Option(help="Weights to start from.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The checkpoint.")] = Path("model.safetensors"),
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    learning_rate: Annotated[float, typer.Option()] = 1e-3,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result on a CPU.")] = 0,
    device: Annotated[str | None, typer.Option(help="Such as cuda; otherwise the CPU.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a delivery, with the augmented layer in the place of its first layer.

    Example: mole train delivery --network small_resnet --epochs 10 --out model.safetensors
    """
    import torch  # noqa: PLC0415  (a second or more)

    from mole.delivery.artefacts import load_delivered_layer  # noqa: PLC0415
    from mole.delivery.manifest import Manifest  # noqa: PLC0415
    from mole.files.store import open_store  # noqa: PLC0415
    from mole.torch import MorphedDataset, attach, save_checkpoint  # noqa: PLC0415
    from mole.torch import train as train_model  # noqa: PLC0415
    from mole.torch.checkpoint import CheckpointFacts  # noqa: PLC0415

    store = open_store(delivery)
    splits = list(Manifest.read(store).splits)
    data = MorphedDataset(delivery, "train" if "train" in splits else splits[0])
    others = [name for name in splits if name != data.split]
    validation = MorphedDataset(delivery, others[-1]) if others else None
    torch.manual_seed(seed)
    model = _model(network, data.input_shape, data.class_count, weights)
    attach(model, load_delivered_layer(store))
    with progress_bar("Training", quiet=quiet) as progress:
        history = train_model(
            model, data, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed,
            device=device, validation=validation, progress=progress,
            on_epoch=lambda epoch: say(_epoch_words(epoch), quiet=quiet),
        )  # fmt: skip
    facts = CheckpointFacts(network, data.input_shape, data.class_count, data.classes)
    save_checkpoint(out, model.cpu(), facts)
    last = history[-1]
    scores = None if last.validation is None else round(last.validation.accuracy, 4)
    show(
        {"model": str(out), "epochs": epochs, "accuracy": scores, "loss": round(last.loss, 4)},
        as_json=as_json,
    )


def predict(
    model: Annotated[Path, typer.Argument(help="A checkpoint that `mole train` wrote.")],
    requests: Annotated[str, typer.Argument(help="Morphed data: what `mole morph` or `deliver` wrote.")],
    split: Annotated[str | None, typer.Option(help="Which split; otherwise the only one.")] = None,
    network: Annotated[str | None, typer.Option(help="module:factory, for a network of your own.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o")] = Path("predictions.parquet"),
    as_json: JsonOption = False,
) -> None:
    """Run a trained network on morphed requests: a Parquet file of row ids, classes and probabilities.

    Example: mole predict model.safetensors requests --out predictions.parquet
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    from mole.delivery.manifest import Manifest  # noqa: PLC0415
    from mole.files.beside import written_beside  # noqa: PLC0415
    from mole.files.store import open_store  # noqa: PLC0415
    from mole.torch import MorphedDataset, load_checkpoint  # noqa: PLC0415
    from mole.torch import predict as predict_rows  # noqa: PLC0415
    from mole.torch.loading import load_model  # noqa: PLC0415

    splits = list(Manifest.read(open_store(requests)).splits)
    if split is None and len(splits) > 1:
        raise ParameterError(f"{requests} has the splits {', '.join(splits)}: choose one with --split")
    checkpoint = load_checkpoint(model, None if network is None else load_model(network))
    table = predict_rows(checkpoint.model, MorphedDataset(requests, split or splits[0]))
    try:
        with written_beside(out) as temporary:
            pq.write_table(table, temporary)
    except OSError as error:
        raise FileError(f"{out} can not be written: {error.strerror or error}") from None
    show({"predictions": str(out), "rows": table.num_rows}, as_json=as_json)


def parse_shape(text: str) -> Shape:
    """A shape from text.

    >>> parse_shape("3x32x32")
    (3, 32, 32)
    """
    try:
        return check_shape(tuple(int(side) for side in text.split("x")))
    except ValueError:
        raise ParameterError(f"'{text}' is no shape: write it as 3x32x32") from None


def _normalisation(mean: str | None, std: str | None) -> Normalisation | None:
    if mean is None and std is None:
        return None
    if mean is None or std is None:
        raise ParameterError("a normalisation needs both --mean and --std")
    try:
        means, stds = (tuple(float(number) for number in text.split(",")) for text in (mean, std))
    except ValueError:
        raise ParameterError("--mean and --std are numbers with commas: 0.49,0.48,0.45") from None
    return Normalisation(means, stds)


def _layer_of_model(
    name: str, shape: Shape, weights: Path | None, classes: int, normalisation: Normalisation | None
) -> FirstLayer:
    from mole.torch import export_first_layer  # noqa: PLC0415

    mean, std = (None, None) if normalisation is None else (normalisation.mean, normalisation.std)
    return export_first_layer(_model(name, shape, classes, weights), shape, mean=mean, std=std)


def _layer_of_file(
    path: Path,
    shape: Shape,
    tensor: str | None,
    stride: int,
    padding: int,
    normalisation: Normalisation | None,
) -> FirstLayer:
    from mole.torch.loading import read_weights  # noqa: PLC0415

    found: dict[str, Any] = read_weights(path)
    names = [name for name, values in found.items() if 2 <= values.ndim <= 5]
    tensor = tensor or next(iter(names), None)
    if tensor is None or tensor not in found:
        raise ParameterError(f"{path} has no weight '{tensor}': it has {', '.join(names[:8])}")
    weight = found[tensor].float().numpy()
    bias = found.get(tensor.removesuffix("weight") + "bias")
    bias = None if bias is None else bias.float().numpy()
    if weight.ndim == 2:
        return FirstLayer.linear(weight, bias, input_shape=shape, normalisation=normalisation)
    groups = max(1, shape[0] // weight.shape[1])
    return FirstLayer.conv(
        weight, bias, input_shape=shape, stride=stride, padding=padding, groups=groups,
        normalisation=normalisation,
    )  # fmt: skip


def _model(name: str, shape: Shape, classes: int, weights: Path | None) -> "nn.Module":
    from mole.torch.loading import load_model, load_weights  # noqa: PLC0415
    from mole.torch.networks import build_network  # noqa: PLC0415

    if ":" in name:
        model = load_model(name, input_shape=shape, classes=classes)
    else:
        model = build_network(name, shape, classes)
    if weights is not None:
        load_weights(model, weights)
    return model


def _epoch_words(epoch: Any) -> str:
    words = f"epoch {epoch.number}: loss {epoch.loss:.4f}, accuracy {epoch.accuracy:.4f}"
    return words if epoch.validation is None else f"{words}, on other data {epoch.validation.accuracy:.4f}"
