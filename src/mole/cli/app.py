"""The application: its commands, and how errors reach the user."""

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from mole._version import __version__
from mole.cli import INTERRUPTED
from mole.cli.analyze import analyze
from mole.cli.audit import audit
from mole.cli.check import recover, verify
from mole.cli.deliver import deliver, morph
from mole.cli.demo import demo
from mole.cli.export_layer import export_layer
from mole.cli.info import info
from mole.cli.keygen import keygen
from mole.cli.predict import predict
from mole.cli.review import review
from mole.cli.terminal import CallError, InterruptedWork, complain, in_options
from mole.cli.train import train
from mole.errors import MoleError

app = typer.Typer(
    help="Hand images over as morphed data. It is obfuscation, not encryption.",
    epilog="Example: mole demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those may be secret
    context_settings={"help_option_names": ["-h", "--help"]},
)
PROVIDER, DEVELOPER, BOTH = "Data provider", "Model developer", "Both"
LAYER, KEY = "--layer first-layer.safetensors", "--key provider.key"


def _add(panel: str, command: Callable[..., None], example: str) -> None:
    """Put a command into its role's panel, with its example at the end of its help."""
    name = command.__name__.replace("_", "-")
    app.command(name, rich_help_panel=panel, epilog=f"Example: mole {name} {example}")(command)


_add(PROVIDER, review, "first-layer.safetensors --data photos --out review.png")
_add(PROVIDER, keygen, "first-layer.safetensors --data photos --out provider.key")
_add(PROVIDER, deliver, f"photos {LAYER} {KEY} --out delivery")
_add(PROVIDER, morph, f"new-photos {LAYER} {KEY} --out requests")
_add(PROVIDER, recover, f"delivery {KEY} --out recovered.npz")
_add(PROVIDER, audit, f"delivery {KEY} {LAYER} --truth photos --out audit")
_add(DEVELOPER, export_layer, "networks:resnet --weights model.pt --input-shape 3x32x32")
_add(DEVELOPER, train, "delivery --network small_resnet --epochs 10 --out model.safetensors")
_add(DEVELOPER, predict, "model.safetensors requests --out predictions.parquet")
_add(BOTH, info, "first-layer.safetensors")
_add(BOTH, verify, "delivery")
_add(BOTH, analyze, f"{LAYER} --kappa 3 --model vgg16 --images 60000")
_add(BOTH, demo, "--out mole-demo")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mole {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def run() -> None:
    """Run the command line, and turn whatever goes wrong into a sentence and an exit code."""
    try:
        try:
            app(prog_name="mole")
        finally:
            sys.stdout.flush()
    except MoleError as error:
        complain(in_options(error))
        sys.exit(2 if isinstance(error, CallError) else 1)
    except InterruptedWork as stop:
        complain(f"interrupted: {stop}")
        sys.exit(INTERRUPTED)
    except (SystemExit, KeyboardInterrupt) as stop:
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:
            raise
        # typer turns Ctrl-C into this, and says nothing
        complain("interrupted: nothing was written; call again to start over")
        sys.exit(INTERRUPTED)
    except OSError as error:  # stdout is a closed pipe, or a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            complain(f"the output cannot be written: {error.strerror}")
        sys.exit(1)
