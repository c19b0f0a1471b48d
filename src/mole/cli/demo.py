"""`mole demo`: the whole story on data that comes with the package."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.options import JsonOption, QuietOption
from mole.cli.terminal import say, show, when_interrupted
from mole.errors import DeliveryError
from mole.quantities import size_text
from mole.storage.atomic import private_folder, reason_of


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for everything.")] = Path(
        "mole-demo"
    ),
    seeds: Annotated[int, typer.Option(help="How often each arm is trained.", min=1, max=1000)] = 3,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play both roles on Fashion-MNIST: export, review, deliver, verify, train three ways, audit."""
    if out.exists() or out.is_symlink():
        raise DeliveryError(f"{out} exists already: choose another name with --out")
    from mole.demo.story import tell  # noqa: PLC0415  (needs extras)

    with _new_folder(out), when_interrupted(f"{out} was removed again; call again to start over"):
        result = tell(out, seeds=seeds, say=lambda text: say(text, quiet=quiet))
    if as_json:
        show(result, as_json=True)
        return
    typer.echo(_table(result))


@contextmanager
def _new_folder(path: Path) -> Iterator[None]:
    """A folder that stays only if all went well, and the folders above it likewise."""
    highest = next(folder for folder in (*reversed(path.absolute().parents), path) if not folder.exists())
    try:
        private_folder(path)
    except OSError as error:
        raise DeliveryError(f"{path} cannot be made: {reason_of(error)}") from None
    try:
        yield
    except BaseException:
        shutil.rmtree(highest, ignore_errors=True)
        raise


def _table(result: dict[str, Any]) -> str:
    lines = [f"{'arm':<28}  accuracy  spread  seconds"]
    for name, arm in result["arms"].items():
        lines.append(
            f"{name:<28}  {100 * arm['accuracy']:6.1f} %  {100 * arm['spread']:4.1f} %  "
            f"{arm['seconds']:7.1f}"
        )
    lines += [
        "",
        f"plain images        {size_text(result['plain bytes']):>12}",
        f"delivered data      {size_text(result['delivered data bytes']):>12}",
        f"augmented layer     {size_text(result['augmented layer bytes']):>12}",
        f"deliver             {result['deliver seconds']:>12} seconds",
        f"picture             {result['picture']}",
        f"audit               {result['audit']}",
    ]
    return "\n".join(lines)
