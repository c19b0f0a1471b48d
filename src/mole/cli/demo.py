"""`mole demo`: the whole story on data that comes with the package."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.options import JsonOption, QuietOption
from mole.cli.terminal import say, show, when_interrupted
from mole.errors import DeliveryError
from mole.quantities import size_text
from mole.storage.atomic import private_folder, put_aside, reason_of

FILES = {"first-layer.safetensors", "private.npz", "public.npz", "delivery", "demo.png", "audit"}


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder for everything.")
    ] = Path("mole-demo"),
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N", help="How many times each arm is trained, with another seed each.", min=1, max=1000
        ),
    ] = 3,
    force: Annotated[
        bool,
        typer.Option("--force", "-f", help="Replace another demo that is there; never anything else."),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play both roles on Fashion-MNIST: export, review, deliver, verify, train three ways, audit."""
    is_there = _check_place(out, force=force)
    from mole.demo.story import tell  # noqa: PLC0415  (needs extras)

    with (
        put_aside(out) if is_there else nullcontext(),
        _new_folder(out),
        when_interrupted(
            f"{out} {'is as it was before' if is_there else 'was removed again'}; call again to start over"
        ),
    ):
        result = tell(out, seeds=seeds, say=lambda text: say(text, quiet=quiet))
    if as_json:
        show(result, as_json=True)
        return
    typer.echo(_table(result))


def _check_place(path: Path, *, force: bool) -> bool:
    """Whether another demo is there, and makes way; anything else is refused."""
    if not (path.exists() or path.is_symlink()):
        return False
    is_demo = path.is_dir() and not path.is_symlink() and {entry.name for entry in path.iterdir()} == FILES
    if not is_demo:
        raise DeliveryError(
            f"{path} exists already, and is not just a demo: choose another name with --out"
        )
    if not force:
        raise DeliveryError(f"{path} exists already: choose another name, or give --force to replace it")
    return True


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
