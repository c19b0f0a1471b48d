"""`mole train` and `mole predict`: a network on morphed data. PyTorch is loaded when they are called."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mole.cli.options import ForceOption, IdentityOption, JsonOption, QuietOption
from mole.cli.terminal import check_output, progress_bar, say, show, when_interrupted
from mole.exchange.checkpoint_files import resume_path

if TYPE_CHECKING:
    from mole.torch import Epoch

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
    batch_size: Annotated[int, typer.Option(help="Rows per step.", min=1, max=1 << 24)] = 64,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate at its peak.", min=1e-12, max=1e3)
    ] = 1e-3,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same result on a CPU.", min=0, max=MAX_SEED)
    ] = 0,
    device: Annotated[str | None, typer.Option(help="Such as cuda; otherwise the CPU.")] = None,
    identity: IdentityOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a delivery, with the augmented layer in the place of its first layer.

    Each finished epoch is kept beside the checkpoint: call again to resume interrupted work.
    """
    check_output(out, force=force)
    with when_interrupted(lambda: _what_is_left(out)), progress_bar("Training", quiet=quiet) as progress:
        from mole.torch import train_on  # noqa: PLC0415  (an extra)

        *_, last = train_on(
            delivery, network=network, weights=weights, out=out, epochs=epochs, batch_size=batch_size,
            learning_rate=learning_rate, seed=seed, device=device, identity=identity, replace=force,
            progress=progress,
            on_resume=lambda finished: say(f"resuming after epoch {finished} of {epochs}", quiet=quiet),
            on_epoch=lambda epoch: say(_in_words(epoch), quiet=quiet),
        )  # fmt: skip
    accuracy = None if last.validation is None else round(last.validation.accuracy, 4)
    show(
        {"model": str(out), "epochs": epochs, "accuracy": accuracy, "loss": round(last.loss, 4)},
        as_json=as_json,
    )


def predict(
    model: Annotated[Path, typer.Argument(help="A checkpoint that `mole train` wrote.")],
    requests: Annotated[str, typer.Argument(help="Morphed data: what `mole morph` or `deliver` wrote.")],
    split: Annotated[str | None, typer.Option(help="Which split; otherwise the only one.")] = None,
    network: Annotated[
        str | None,
        typer.Option(help="module:factory of the network, for one of your own; built-in ones are known."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The Parquet file to write.")] = Path(
        "predictions.parquet"
    ),
    identity: IdentityOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a trained network on morphed requests: a Parquet file of row ids, classes and probabilities."""
    check_output(out, force=force)
    from mole.torch import predict_on  # noqa: PLC0415  (an extra)

    answers = predict_on(
        requests, checkpoint=model, split=split, network=network, out=out, identity=identity, replace=force
    )
    show({"predictions": str(out), "rows": answers.num_rows}, as_json=as_json)


def _what_is_left(out: Path) -> str:
    kept = resume_path(out)
    if kept.exists():
        return f"all finished epochs are kept in {kept}; call again to resume"
    return "no epoch was finished; call again to start over"


def _in_words(epoch: "Epoch") -> str:
    words = f"epoch {epoch.number}: loss {epoch.loss:.4f}, accuracy {epoch.accuracy:.4f}"
    return words if epoch.validation is None else f"{words}, on other data {epoch.validation.accuracy:.4f}"
