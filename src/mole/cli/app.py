"""The application: its commands, and how errors reach the user."""

import os
import sys
from typing import Annotated

import typer

from mole._version import __version__
from mole.cli.analyze import analyze
from mole.cli.audit import audit
from mole.cli.check import recover, verify
from mole.cli.deliver import deliver, morph
from mole.cli.demo import demo
from mole.cli.develop import export_layer, predict, train
from mole.cli.info import info
from mole.cli.keygen import keygen
from mole.cli.review import review
from mole.errors import MoleError

app = typer.Typer(
    help="Hand images over as morphed data. It is obfuscation, not encryption.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those may be secret
    context_settings={"help_option_names": ["-h", "--help"]},
)
INTERRUPTED = 130
PROVIDER, DEVELOPER, BOTH = "Data provider", "Model developer", "Both"
app.command(rich_help_panel=PROVIDER)(review)
app.command(rich_help_panel=PROVIDER)(keygen)
app.command(rich_help_panel=PROVIDER)(deliver)
app.command(rich_help_panel=PROVIDER)(morph)
app.command(rich_help_panel=PROVIDER)(recover)
app.command(rich_help_panel=PROVIDER)(audit)
app.command("export-layer", rich_help_panel=DEVELOPER)(export_layer)
app.command(rich_help_panel=DEVELOPER)(train)
app.command(rich_help_panel=DEVELOPER)(predict)
app.command(rich_help_panel=BOTH)(info)
app.command(rich_help_panel=BOTH)(verify)
app.command(rich_help_panel=BOTH)(analyze)
app.command(rich_help_panel=BOTH)(demo)


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


def main() -> None:
    """Run the command line: the entry point of the command `mole`."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except MoleError as error:
        typer.echo(f"mole: {error}", err=True)
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:  # typer turns Ctrl-C into this, and says nothing
            typer.echo("mole: interrupted: nothing half-written is left; call again to go on", err=True)
        raise
    except OSError as error:  # stdout is a closed pipe, or a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            typer.echo(f"mole: the output can not be written: {error.strerror}", err=True)
        sys.exit(1)
