"""`mole predict` and `mole evaluate`: a trained network on data. PyTorch is loaded last, if at all."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.fit_to_print import fit_to_print
from mole.cli.fitted_head import percent
from mole.cli.named_files import check_output
from mole.cli.options import (
    BatchSizeOption,
    CheckpointOption,
    DeliveryArgument,
    DepthOption,
    DeviceOption,
    ForceOption,
    IdentityOption,
    JsonOption,
    ModeOption,
    NetworkOption,
    PassphraseFileOption,
    QuietOption,
    ResizeOption,
    SkipBadOption,
    WindowOption,
)
from mole.cli.predicting_at_home import HomeFrontOption, HomeHeadOption, is_at_home, predict_at_home
from mole.cli.predicting_by_server import (
    ModelOption,
    ServerBitsOption,
    ServerBudgetOption,
    ServerCertificateOption,
    ServerClipOption,
    ServerKeyOption,
    ServerLayerOption,
    TokenFileOption,
    UrlOption,
    check_without_url,
    predict_by_server,
)
from mole.cli.terminal import progress_bar, show, warnings_said
from mole.cli.wrong_calls import CallError
from mole.errors import ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts, read_facts
from mole.exchange.delivery import Delivery
from mole.exchange.split_roles import split_to_score
from mole.foreign_text import shown

if TYPE_CHECKING:
    from mole.torch import Score

OTHER_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".npz", ".npy")
MOST_SHOWN = 20  # classes of a table on a terminal; JSON has them all
LONGEST_NAME = 20


def predict(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Morphed requests, or images of your own: a folder or a URL."),
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For requests: a checkpoint that `mole train` wrote, if not model.safetensors.",
        ),
    ] = None,
    network: NetworkOption = None,
    front: HomeFrontOption = None,
    head: HomeHeadOption = None,
    url: UrlOption = None,
    key: ServerKeyOption = None,
    layer: ServerLayerOption = None,
    model: ModelOption = None,
    token_file: TokenFileOption = None,
    certificate: ServerCertificateOption = None,
    bits: ServerBitsOption = None,
    clip: ServerClipOption = None,
    budget: ServerBudgetOption = None,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    skip_bad: SkipBadOption = False,
    window: WindowOption = None,
    depth: DepthOption = "8",
    split: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Which split; by default the only one of requests, and all of your images."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The Parquet file to write.")
    ] = Path("predictions.parquet"),
    batch_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="For requests: rows at a time, if not 256.", min=1, max=1 << 24),
    ] = None,
    device: DeviceOption = None,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a trained network on morphed requests, or front and head on your own images: a Parquet file.

    It has the answer and the probability of each class, for every row of requests by its id, or for every
    image by its name. Where classes have names, they stand beside their numbers; where the data has labels,
    so do these. With --front and --head nothing leaves your machine, and neither key nor noise is needed.
    With --url your images are morphed and sent to the developer's server, which answers.
    """
    if out.suffix.lower() in OTHER_TABLES:
        raise CallError(f"predictions are a Parquet file: give {out.name} the ending .parquet")
    of_server = {
        "--key": key, "--layer": layer, "--served-name": model, "--token-file": token_file,
        "--certificate": certificate, "--bits": bits, "--clip": clip, "--budget": budget,
        "--passphrase-file": passphrase_file,
    }  # fmt: skip
    if url is not None:
        check_output(out, force=force)
        facts = predict_by_server(
            data, url, out, key=key, layer=layer, model=model, token_file=token_file,
            certificate=certificate, front=front, bits=bits, clip=clip, budget=budget, split=split,
            mode=mode, resize=resize, skip_bad=skip_bad, window=window, depth=depth, batch_size=batch_size,
            passphrase_file=passphrase_file, identity=identity, quiet=quiet,
            others={"--checkpoint": checkpoint, "--network": network, "--head": head, "--device": device},
        )  # fmt: skip
        _tell(facts, as_json=as_json)
        return
    check_without_url(of_server)
    at_home = is_at_home(
        front,
        head,
        {"--checkpoint": checkpoint, "--network": network, "--batch-size": batch_size, "--device": device,
         "--identity": identity},
        {"--mode": mode, "--resize": resize, "--skip-bad": skip_bad, "--window": window,
         "--depth": None if depth == "8" else depth},
    )  # fmt: skip
    check_output(out, force=force)
    with warnings_said(quiet=quiet), progress_bar("Predicting", quiet=quiet) as progress:
        if at_home and front is not None and head is not None:
            facts = predict_at_home(
                data, front, head, out, split=split, mode=mode, resize=resize, skip_bad=skip_bad,
                window=window, depth=depth, progress=progress,
            )  # fmt: skip
        else:
            facts = _predict_requests(
                data, checkpoint or Path("model.safetensors"), identity, split=split, network=network,
                out=out, batch_size=batch_size or 256, device=device, replace=force, progress=progress,
            )  # fmt: skip
    _tell(facts, as_json=as_json)


def _tell(facts: dict[str, Any], *, as_json: bool) -> None:
    if facts.get("accuracy") is not None:
        facts["accuracy"] = round(facts["accuracy"], 4) if as_json else percent(facts["accuracy"])
    show(facts, as_json=as_json)


def _predict_requests(
    requests: str, checkpoint: Path, identity: list[Path] | None, *, out: Path, **options: Any
) -> dict[str, Any]:
    """Predictions for morphed requests, and what there is to tell of them."""
    opened, _ = _opened(requests, checkpoint, identity)
    answers = developer().predict_on(opened, checkpoint=checkpoint, out=out, **options)
    facts: dict[str, Any] = {"predictions": str(out), "rows": answers.num_rows}
    if "label" in answers.column_names:
        facts["accuracy"] = float((answers["prediction"].to_numpy() == answers["label"].to_numpy()).mean())
    return facts


def evaluate(
    delivery: DeliveryArgument,
    checkpoint: CheckpointOption = Path("model.safetensors"),
    network: NetworkOption = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Which split; by default test, else validation, else the only one."
        ),
    ] = None,
    batch_size: BatchSizeOption = 256,
    device: DeviceOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a trained network on a delivery with labels: accuracy, AUC and the confusion matrix.

    The AUC of two classes is that of the second; of more, each is told from all others, and it is the mean.
    """
    with warnings_said(quiet=quiet), progress_bar("Evaluating", quiet=quiet) as progress:
        opened, known = _opened(delivery, checkpoint, identity)
        name = split_to_score(opened) if split is None else split
        score: Score = developer().evaluate_on(
            opened, checkpoint=checkpoint, split=name, network=network, batch_size=batch_size,
            device=device, progress=progress,
        )  # fmt: skip
    facts: dict[str, Any] = {
        "checkpoint": str(checkpoint),
        "split": name,
        "rows": score.rows,
        "loss": round(score.loss, 4),
        "accuracy": round(score.accuracy, 4) if as_json else percent(score.accuracy),
        "auc": None if score.auc is None else round(score.auc, 4),
    }
    names = _class_names(known.class_names or opened.manifest.classes or (), score)
    if as_json:
        confusion = None if score.confusion is None else score.confusion.tolist()
        facts |= {"classes": names, "confusion": confusion}
    show(facts, as_json=as_json)
    if not as_json:
        for line in _table(names, score):
            typer.echo(fit_to_print(line))


def developer() -> Any:
    """The developer's tools, which load PyTorch."""
    import mole.torch  # noqa: PLC0415  (an extra)

    return mole.torch


def _opened(place: str, checkpoint: Path, identity: list[Path] | None) -> tuple[Delivery, CheckpointFacts]:
    """Both files, as far as they can be judged without PyTorch, which takes seconds to load."""
    opened = Delivery.open(place, identity=identity)
    facts = read_facts(checkpoint)
    theirs, ours = facts.key_fingerprint, opened.manifest.key_fingerprint
    if theirs is not None and theirs != ours:
        raise ParameterError(
            f"{place} was morphed with key {ours} and {checkpoint} was trained for key {shown(theirs)}: "
            "give a network that was trained on data of the same key"
        )
    return opened, facts


def _class_names(known: tuple[str, ...], score: "Score") -> list[str]:
    """A name for every output of the network: its number, where no class belongs to it."""
    outputs = score.probabilities.shape[1]
    return [*known[:outputs], *(str(number) for number in range(min(len(known), outputs), outputs))]


def _table(names: list[str], score: "Score") -> list[str]:
    """The confusion matrix in lines: a class in each row, what it was taken for in the columns."""
    if score.confusion is None or len(names) > MOST_SHOWN:
        return [f"confusion matrix  {len(names)} classes: ask for JSON"]
    heads = [shown(name, LONGEST_NAME) for name in names]
    cells = [[str(count) for count in row] for row in score.confusion.tolist()]
    first = max(map(len, heads))
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    lines = ["confusion matrix (a row for each class, a column for what it was taken for)"]
    for head, row in zip(["", *heads], [heads, *cells], strict=True):
        columns = (f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        lines.append(f"  {head:<{first}}  {'  '.join(columns)}")
    return lines
