"""`mole playground`: a local page to try things on."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated

import typer

from mole.cli.options import JsonOption, QuietOption
from mole.cli.terminal import say
from mole.playground.visiting import door, serve

OPEN = "The playground is open at this address, for this machine alone. Ctrl-C ends it."
Tell = Callable[[str], None]
ENDED = "The playground has ended, and its keys and pictures are gone."


def playground(
    port: Annotated[
        int,
        typer.Option(metavar="N", help="Port on this machine; 0 for any that is free.", min=0, max=65535),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address, and open no browser.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Open a local page: choose a picture, move kappa and noise, and see what each attacker gets.

    Nothing leaves your machine. The address that is printed holds a token: whoever has it, and is on this
    machine, can use the page. Keys are made in memory and thrown away. Ctrl-C ends it.
    """
    with nullcontext() if no_browser else door() as show:
        try:
            serve(port, _teller(show, as_json=as_json, quiet=quiet))
        except KeyboardInterrupt:  # how it ends, and no mishap
            say(ENDED, quiet=quiet)


def _teller(show: Tell | None, *, as_json: bool, quiet: bool) -> Tell:
    """What tells the person where the page is, and the browser, if one is to be opened.

    The address is data, and all that stdout gets. The terminal would mask the token in it, and this
    one is there to be used.
    """

    def tell(url: str) -> None:
        typer.echo(json.dumps({"url": url}) if as_json else url)
        say(OPEN, quiet=quiet)
        if show is not None:
            show(url)

    return tell
