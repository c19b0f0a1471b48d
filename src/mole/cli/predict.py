"""`mole predict`: a trained network on morphed requests. It loads PyTorch when called."""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.options import ForceOption, JsonOption
from mole.cli.terminal import check_output, show


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
    from mole.torch import predict_on  # noqa: PLC0415  (loads PyTorch)

    answers = predict_on(requests, checkpoint=model, split=split, network=network, out=out, replace=force)
    show({"predictions": str(out), "rows": answers.num_rows}, as_json=as_json)
