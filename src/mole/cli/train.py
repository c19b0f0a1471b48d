"""`mole train`: a network learns from morphed data. PyTorch is loaded when the files were looked at."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.fitted_head import fits_head, percent, tell_of_head
from mole.cli.named_files import check_input, check_output
from mole.cli.options import (
    DeliveryArgument,
    DeviceOption,
    ForceOption,
    IdentityOption,
    JsonOption,
    QuietOption,
)
from mole.cli.predict import developer
from mole.cli.terminal import progress_bar, say, show, warnings_said, when_interrupted
from mole.exchange.checkpoint_files import is_checkpoint, resume_path
from mole.exchange.delivery import Delivery
from mole.quantities import size_text

if TYPE_CHECKING:
    from mole.torch import Epoch, Evaluation

KEPT = "the augmented layer's output is computed once, and kept in memory"
MAX_SEED = (1 << 63) - 1  # what PyTorch takes


def train(
    delivery: DeliveryArgument,
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="small_vgg, small_resnet, vgg16, linear_head, or module:factory for one of your own. By "
            "default small_vgg for images, and linear_head for a protected delivery.",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Weights to start from: a plain network's, or a checkpoint of the same key.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The checkpoint to write.")
    ] = Path("model.safetensors"),
    epochs: Annotated[
        int, typer.Option(metavar="N", help="Passes over the data.", min=1, max=1_000_000)
    ] = 5,
    batch_size: Annotated[int, typer.Option(metavar="N", help="Rows per step.", min=1, max=1 << 24)] = 64,
    learning_rate: Annotated[
        float, typer.Option(metavar="NUMBER", help="Learning rate at its peak.", min=1e-12, max=1e3)
    ] = 1e-3,
    weight_decay: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="How strongly weights are drawn towards zero.", min=0, max=1e3),
    ] = 0,
    mixup: Annotated[
        float,
        typer.Option(
            metavar="ALPHA",
            help="Learn from weighted means of two rows; 0.2 is usual, and 0 learns from rows alone.",
            min=0,
            max=1e3,
        ),
    ] = 0,
    cache_features: Annotated[
        bool | None,
        typer.Option(
            help="Keep what the augmented layer gives in memory, or compute it in every epoch; the network "
            "is the same. By default it is kept where it fits into a quarter of the free memory."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Fixes the random numbers: the same seed gives the same network on a CPU.",
            min=0,
            max=MAX_SEED,
        ),
    ] = 0,
    device: DeviceOption = None,
    identity: IdentityOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a network on a delivery, with the augmented layer in place of its first layer.

    Each finished epoch is kept beside the checkpoint: call again to resume interrupted work, or with more
    epochs to go on with a finished training. The validation split is scored after each epoch, and the test
    split once, at the end; the accuracy on the training split is counted while the network learns.

    On a protected delivery a linear head is fitted in one step, knowing the noise; --epochs and the like
    are for other networks. Return it to the provider, who uses it on images without noise.
    """
    check_output(out, force=force or is_checkpoint(out))  # a training of fewer epochs can go on
    scores: dict[str, Evaluation] = {}
    before = _stamp(out)
    with (
        when_interrupted(lambda: _what_is_left(out, before)),
        warnings_said(quiet=quiet),
        progress_bar("Training", quiet=quiet) as progress,
    ):
        opened = Delivery.open(delivery, identity=identity)
        check_input(weights)
        if fits_head(opened, network, weights):
            fitted = developer().fit_head_on(opened, out=out, replace=force, progress=progress)
            tell_of_head(fitted, out, as_json=as_json, quiet=quiet)
            return
        history = developer().train_on(
            opened, network=network or "small_vgg", weights=weights, out=out, epochs=epochs,
            batch_size=batch_size, learning_rate=learning_rate, weight_decay=weight_decay, mixup=mixup,
            cache_features=cache_features, seed=seed, device=device,
            identity=identity, replace=force, progress=progress,
            on_resume=lambda finished: say(f"resuming after epoch {finished} of {epochs}", quiet=quiet),
            on_cache=lambda size: say(f"{KEPT}: {size_text(size)}", quiet=quiet),
            on_epoch=lambda epoch: say(_in_words(epoch), quiet=quiet),
            on_score=scores.__setitem__,
        )  # fmt: skip
    last = history[-1]
    accuracy = {opened.main_split: last.accuracy, **_watched(last)}
    accuracy |= {split: score.accuracy for split, score in scores.items()}
    facts: dict[str, Any] = {"model": str(out), "epochs": epochs, "loss": round(last.loss, 4)}
    facts["accuracy"] = {
        split: round(share, 4) if as_json else percent(share) for split, share in accuracy.items()
    }
    show({**facts, **_best(history, as_json=as_json)}, as_json=as_json)


def _watched(epoch: "Epoch") -> dict[str, float]:
    """The accuracy on the split that was looked at after each epoch."""
    return {} if epoch.validation is None else {str(epoch.split): epoch.validation.accuracy}


def _best(history: "tuple[Epoch, ...]", *, as_json: bool) -> dict[str, Any]:
    """The epoch that scored best on the split that was looked at; the network is that of the last one."""
    watched = [(epoch.validation.accuracy, -epoch.number) for epoch in history if epoch.validation]
    if not watched:
        return {}
    accuracy, number = max(watched)
    best = {"epoch": -number, str(history[-1].split): round(accuracy, 4)}
    return {
        "best epoch": best if as_json else f"{-number}, with {percent(accuracy)} on {history[-1].split}"
    }


def _stamp(file: Path) -> tuple[int, int] | None:
    """What tells a file from one that took its place; None where there is none."""
    if not file.exists():
        return None
    facts = file.stat()
    return facts.st_ino, facts.st_mtime_ns


def _what_is_left(out: Path, before: tuple[int, int] | None) -> str:
    if _stamp(out) != before:
        return f"{out} is complete, and only scores are missing: mole evaluate has them"
    kept = resume_path(out)
    if kept.exists():
        return f"all finished epochs are kept in {kept}; call again to resume"
    return "no epoch was finished; call again to start over"


def _in_words(epoch: "Epoch") -> str:
    words = f"epoch {epoch.number}: loss {epoch.loss:.4f}, accuracy {percent(epoch.accuracy)}"
    return words + "".join(f", on {split} {percent(share)}" for split, share in _watched(epoch).items())
