"""`mole train`: a network on morphed data. It loads PyTorch when called."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.models import build_model
from mole.cli.terminal import (
    ForceOption,
    JsonOption,
    QuietOption,
    check_output,
    progress_bar,
    say,
    show,
    when_interrupted,
)
from mole.errors import DeliveryError, FileError
from mole.storage.locations import reason_of

if TYPE_CHECKING:
    from mole.exchange.manifest import Manifest
    from mole.torch import MorphedDataset
    from mole.torch.evaluation import Epoch

UNFINISHED = ".unfinished"
MAX_SEED = (1 << 63) - 1  # what PyTorch takes


def train(
    delivery: Annotated[str, typer.Argument(help="A delivery: a folder or a URL.")],
    network: Annotated[
        str,
        typer.Option(help="small_vgg, small_resnet, vgg16, or module:factory for a model of your own."),
    ] = "small_vgg",
    weights: Annotated[Path | None, typer.Option(help="Weights to start from.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The checkpoint to write.")] = Path(
        "model.safetensors"
    ),
    epochs: Annotated[int, typer.Option(help="Passes over the data.", min=1, max=1_000_000)] = 5,
    batch_size: Annotated[int, typer.Option(help="Rows for a step.", min=1, max=1 << 24)] = 64,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate at its peak.", min=1e-12, max=1e3)
    ] = 1e-3,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same result on a CPU.", min=0, max=MAX_SEED)
    ] = 0,
    device: Annotated[str | None, typer.Option(help="Such as cuda; otherwise the CPU.")] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a delivery, with the augmented layer in the place of its first layer.

    Each finished epoch is kept beside the checkpoint: interrupted work goes on with the same command.
    """
    check_output(out, force=force)
    kept = out.with_name(out.name + UNFINISHED)
    course = {
        "epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed,
        "device": device,
    }  # fmt: skip
    with when_interrupted(lambda: _what_is_left(kept)):
        last = _train(delivery, network, weights, out, kept, course, force=force, quiet=quiet)
    scores = None if last.validation is None else round(last.validation.accuracy, 4)
    show(
        {"model": str(out), "epochs": epochs, "accuracy": scores, "loss": round(last.loss, 4)},
        as_json=as_json,
    )


def _what_is_left(kept: Path) -> str:
    if kept.exists():
        return f"all finished epochs are kept in {kept}; call again to go on"
    return "no epoch was finished; call again to start over"


def _train(
    delivery: str,
    network: str,
    weights: Path | None,
    out: Path,
    kept: Path,
    course: dict[str, Any],
    *,
    force: bool,
    quiet: bool,
) -> "Epoch":
    """Train, write the checkpoint, and tell how the last epoch went."""
    # mole.torch comes before torch: it says what to do where PyTorch is missing.
    from mole.torch import CheckpointFacts, attach, save_checkpoint  # noqa: PLC0415, I001
    from mole.torch import train as train_model  # noqa: PLC0415
    from mole.torch.resume import ResumeFile  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from mole.exchange.delivery import load_delivered_layer  # noqa: PLC0415
    from mole.exchange.manifest import Manifest  # noqa: PLC0415
    from mole.storage.stores import open_store  # noqa: PLC0415

    store = open_store(delivery)
    manifest = Manifest.read(store)
    if manifest.probe_error is None:
        raise DeliveryError(
            f"{delivery} came without an augmented layer, for predictions: train on the delivery with it"
        )
    data, validation = _splits(delivery, manifest)
    torch.manual_seed(course["seed"])
    model = build_model(network, data.input_shape, data.class_count, weights)
    attach(model, load_delivered_layer(store))
    start = {"delivery": manifest.delivery_id, "network": network, "weights": _digest(weights)}
    unfinished = ResumeFile(kept, {**start, **course}, replace=force)
    if (done := unfinished.epochs()) > 0:
        say(f"going on after epoch {done} of {course['epochs']}", quiet=quiet)
    with progress_bar("Training", quiet=quiet) as progress:
        history = train_model(
            model, data, **course, validation=validation, progress=progress, unfinished=unfinished,
            on_epoch=lambda epoch: say(_in_words(epoch), quiet=quiet),
        )  # fmt: skip
    facts = CheckpointFacts(network, data.input_shape, data.class_count, data.classes)
    save_checkpoint(out, model.cpu(), facts)
    unfinished.remove()
    return history[-1]


def _splits(delivery: str, manifest: "Manifest") -> "tuple[MorphedDataset, MorphedDataset | None]":
    """What to learn from, and what to score on."""
    from mole.torch import MorphedDataset  # noqa: PLC0415

    names = list(manifest.splits)
    data = MorphedDataset(delivery, "train" if "train" in names else names[0])
    if data.labels is None:
        raise DeliveryError(f"{delivery} has no labels to learn from: ask for a delivery with labels")
    others = [name for name in names if name != data.split]
    return data, MorphedDataset(delivery, others[-1]) if others else None


def _digest(file: Path | None) -> str | None:
    """What a file of weights holds, in a word."""
    if file is None:
        return None
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(f"{file} cannot be read: {reason_of(error)}") from None


def _in_words(epoch: "Epoch") -> str:
    words = f"epoch {epoch.number}: loss {epoch.loss:.4f}, accuracy {epoch.accuracy:.4f}"
    return words if epoch.validation is None else f"{words}, on other data {epoch.validation.accuracy:.4f}"
