"""`mole demo`: the whole story on data that comes with the package."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.output import JsonOption, QuietOption, say, show
from mole.errors import DeliveryError


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for everything.")] = Path(
        "mole-demo"
    ),
    seeds: Annotated[int, typer.Option(help="How often each arm is trained.", min=1)] = 3,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play both roles on Fashion-MNIST: export, review, deliver, verify, train three ways, audit.

    Example: mole demo --out mole-demo
    """
    if out.exists():
        raise DeliveryError(f"{out} exists already: choose another name with --out")
    from mole.demo.story import tell  # noqa: PLC0415  (loads PyTorch)

    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise DeliveryError(f"{out} can not be made: {error.strerror}") from None
    result = tell(out, seeds=seeds, say=lambda text: say(text, quiet=quiet))
    if as_json:
        show(result, as_json=True)
        return
    typer.echo(_table(result))


def _table(result: dict[str, Any]) -> str:
    lines = [f"{'arm':<28}  accuracy  spread  seconds"]
    for name, arm in result["arms"].items():
        lines.append(
            f"{name:<28}  {100 * arm['accuracy']:6.1f} %  {100 * arm['spread']:4.1f} %  "
            f"{arm['seconds']:7.1f}"
        )
    lines += [
        "",
        f"plain images        {result['plain bytes']:>12,} bytes",
        f"delivered data      {result['delivered data bytes']:>12,} bytes",
        f"augmented layer     {result['augmented layer bytes']:>12,} bytes",
        f"deliver             {result['deliver seconds']:>12} seconds",
        f"picture             {result['picture']}",
        f"audit               {result['audit']}",
    ]
    return "\n".join(lines)
