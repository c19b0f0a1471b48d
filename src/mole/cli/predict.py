"""`mole predict`: a trained network on morphed requests. It loads PyTorch when called."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mole.cli.models import build_model
from mole.cli.terminal import ForceOption, JsonOption, check_output, show
from mole.errors import FileError, ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.storage.atomic import new_file
from mole.storage.locations import reason_of

if TYPE_CHECKING:
    from torch import nn


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
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a trained network on morphed requests: a Parquet file of row ids, classes and probabilities."""
    check_output(out, force=force)
    import pyarrow.parquet as pq  # noqa: PLC0415

    from mole.exchange.manifest import Manifest  # noqa: PLC0415
    from mole.storage.stores import open_store  # noqa: PLC0415
    from mole.torch import MorphedDataset, load_checkpoint  # noqa: PLC0415  (loads PyTorch)
    from mole.torch import predict as predict_rows  # noqa: PLC0415

    splits = list(Manifest.read(open_store(requests)).splits)
    if split is None and len(splits) > 1:
        raise ParameterError(f"{requests} has the splits {', '.join(splits)}: choose one with --split")
    checkpoint = load_checkpoint(model, None if network is None else _maker(network))
    table = predict_rows(checkpoint.model, MorphedDataset(requests, split or splits[0]))
    try:
        with new_file(out) as temporary:
            pq.write_table(table, temporary)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {reason_of(error)}") from None
    show({"predictions": str(out), "rows": table.num_rows}, as_json=as_json)


def _maker(network: str) -> "Callable[[CheckpointFacts], nn.Module]":
    """Makes the network as `mole train` did: for the shape and the classes that its checkpoint names."""
    return lambda facts: build_model(network, facts.input_shape, facts.classes)
