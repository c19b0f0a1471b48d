"""The options of `mole deliver` and `mole morph` that ask for a protected delivery."""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.wrong_calls import CallError
from mole.provider.protect import Amount, Protect
from mole.quantities import joined

FrontOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Hand over noisy features instead of images: the developer's front, as ONNX."
    ),
]
BitsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="With --front: bits that a row tells about its image at most, averaged over images, for all "
        "splits or as train=1,test=8.",
    ),
]
SigmaOption = Annotated[
    str | None, typer.Option(metavar="S", help="Instead of --bits: standard deviation of the noise.")
]
EpsilonOption = Annotated[
    str | None,
    typer.Option(
        metavar="E", help="Instead of --bits: epsilon of differential privacy between any two images."
    ),
]
ClipOption = Annotated[
    float, typer.Option(metavar="C", help="With --front: the largest length of an image's features.")
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="With --front: refuse if an image would have given away more bits than this, in all "
        "deliveries under the key. Kept: later deliveries are held to it, too.",
    ),
]


def protection_asked_for(
    front: Path | None,
    bits: str | None,
    sigma: str | None,
    epsilon: str | None,
    clip: float,
    budget: float | None,
) -> Protect | None:
    """What the options ask for; None where nothing is to be protected."""
    amounts = {"--bits": bits, "--sigma": sigma, "--epsilon": epsilon}
    given = [name for name, text in amounts.items() if text is not None]
    if front is None:
        if given or budget is not None or clip != 1.0:
            name = [*given, *(["--budget"] if budget is not None else []), "--clip"][0]
            more = "; the bits of DICOM pixels are --depth" if name == "--bits" else ""
            raise CallError(f"{name} is for protected deliveries: add --front, or leave it out{more}")
        return None
    if len(given) > 1:
        raise CallError(f"{joined(given)} say the same thing in different ways: give one of them")
    if not given:
        raise CallError(
            "--front needs one of --bits, --sigma and --epsilon: give the bits, such as --bits 1"
        )
    return Protect(
        front,
        bits=parse_amount("--bits", bits),
        sigma=parse_amount("--sigma", sigma),
        epsilon=parse_amount("--epsilon", epsilon),
        clip=clip,
        budget=budget,
    )


def parse_amount(option: str, text: str | None) -> Amount | None:
    """A number, or one for each split.

    >>> parse_amount("--bits", "1"), parse_amount("--bits", "train=1,test=8")
    (1.0, {'train': 1.0, 'test': 8.0})
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        parts = [part.rpartition("=") for part in text.split(",")]
        amounts = [(name.strip(), float(value)) for name, _, value in parts]
    except ValueError:
        raise CallError(
            f"'{text}' is not an amount: write {option} 1, or {option} train=1,test=8"
        ) from None
    names = [name for name, _ in amounts]
    for name in names:
        if names.count(name) > 1:
            raise CallError(f"'{text}' has two amounts for split '{name}': leave out one of them")
    return dict(amounts)
