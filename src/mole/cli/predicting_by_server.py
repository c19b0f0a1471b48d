"""The third of `mole predict`: the provider's images, morphed, and a developer's server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.delivering import opener
from mole.cli.options import DepthText, parse_depth, parse_window
from mole.cli.predicting_at_home import write_answers
from mole.cli.protecting import protection_asked_for
from mole.cli.serve import read_token
from mole.cli.terminal import note, progress_bar, warnings_said, when_interrupted
from mole.cli.wrong_calls import CallError
from mole.errors import MoleError
from mole.exchange.layer_files import load
from mole.provider.client import Client
from mole.provider.kept_answers import KeptAnswers
from mole.provider.predicting import predict_images
from mole.scheme.first_layer import FirstLayer
from mole.sources.opening import open_source
from mole.sources.preparation import Mode, Resize

UrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="For images of your own: the developer's server, such as grpc://127.0.0.1:8081 or https://...",
    ),
]
ServerKeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="With --url: your key.")
]
ServerLayerOption = Annotated[
    Path | None, typer.Option("--layer", metavar="FILE", help="With --url: the developer's first layer.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--served-name", metavar="NAME", help="With --url: what the server calls the network, if not model."
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --url: file whose first line is the token that it asks for."),
]
ServerCertificateOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --url: who vouches for the server, PEM, if not the system."),
]
ServerBitsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="With --url and --front: bits that a request tells about an image at most, on average.",
    ),
]
ServerClipOption = Annotated[
    float | None,
    typer.Option(
        metavar="C",
        help="With --url and --front: the largest length of an image's features, as in the delivery, if "
        "not 1.",
    ),
]
ServerBudgetOption = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="With --url and --front: refuse if an image would have given away more bits, in all that "
        "left under the key.",
    ),
]


def predict_by_server(
    data: str,
    url: str,
    out: Path,
    *,
    key: Path | None,
    layer: Path | None,
    model: str | None,
    token_file: Path | None,
    certificate: Path | None,
    front: Path | None,
    bits: str | None,
    clip: float | None,
    budget: float | None,
    split: str | None,
    mode: Mode | None,
    resize: Resize | None,
    skip_bad: bool,
    window: str | None,
    depth: DepthText,
    batch_size: int | None,
    passphrase_file: Path | None,
    identity: list[Path] | None,
    others: dict[str, Any],
    quiet: bool,
) -> dict[str, Any]:
    """Write predictions of a server for one's own images, and what there is to tell of them."""
    said = [option for option, value in others.items() if value is not None]
    if said:
        raise CallError(f"{said[0]} does not go with --url, which asks a server: leave out one of them")
    if key is None or layer is None:
        missing = "--key" if key is None else "--layer"
        raise CallError(f"--url needs --key and --layer, to morph what is sent: add {missing}")
    protect = protection_asked_for(front, bits, None, None, 1.0 if clip is None else clip, budget)
    first = load(layer)
    if not isinstance(first, FirstLayer):
        raise CallError(f"{layer} is an augmented layer: give the developer's first layer")
    token = None if token_file is None else read_token(token_file)
    source = open_source(data, window=parse_window(window), bits=parse_depth(depth))
    kept = KeptAnswers.beside(out)
    with (
        warnings_said(quiet=quiet),
        _told_what_is_kept(kept, quiet=quiet),
        progress_bar("Asking", quiet=quiet) as progress,
        progress_bar("Making the core", quiet=quiet) as making,
        Client(
            url, opener(key, passphrase_file, identity, making)(), first, model=model or "model",
            protect=protect, token=token, certificate=certificate, batch_rows=batch_size or 64,
        ) as client,
    ):  # fmt: skip
        answers = predict_images(
            client, source, split=split, mode=mode, resize=resize, skip_bad=skip_bad, kept=kept,
            progress=progress,
        )  # fmt: skip
        facts = write_answers(answers, out)
        kept.remove()
    return {**facts, "server": url}


@contextmanager
def _told_what_is_kept(kept: KeptAnswers, *, quiet: bool) -> Iterator[None]:
    """Say where answers are, if not all came."""
    sentence = f"the answers that came are in {kept.path}; the same command goes on from there"
    nothing = "nothing was written; call again to start over"
    with when_interrupted(lambda: sentence if kept.is_there else nothing):
        try:
            yield
        except MoleError:
            if kept.is_there:
                note(sentence, quiet=quiet)
            raise


def check_without_url(of_server: dict[str, Any]) -> None:
    """Refuse what is said of a server where none is asked."""
    said = [option for option, value in of_server.items() if value is not None]
    if said:
        raise CallError(f"{said[0]} is for predictions by a server: add --url, or leave it out")
