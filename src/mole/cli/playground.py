"""`mole playground`: a local page to try things on."""

from contextlib import nullcontext
from typing import Annotated

import typer

from mole.cli.options import QuietOption
from mole.cli.terminal import say


def playground(
    port: Annotated[
        int,
        typer.Option(metavar="N", help="Port on this machine; 0 for any that is free.", min=0, max=65535),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address, and open no browser.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Open a local page: choose a picture, move kappa and noise, and see what each attacker gets.

    Nothing leaves your machine. The address that is printed holds a token: whoever has it, and is on this
    machine, can use the page. Keys are made in memory and thrown away. Ctrl-C ends it.
    """
    from mole.playground.visiting import door, serve  # noqa: PLC0415  (needs extras)

    with nullcontext() if no_browser else door() as show:

        def opened(url: str) -> None:
            typer.echo(url)
            say(
                "The playground is open at this address, for this machine alone. Ctrl-C ends it.",
                quiet=quiet,
            )
            if show is not None:
                show(url)

        try:
            serve(port, opened)
        except KeyboardInterrupt:  # how it ends, and no mishap
            say("The playground has ended, and its keys and pictures are gone.", quiet=quiet)
