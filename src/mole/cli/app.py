"""The application: its commands, each loaded when it is called, and how errors reach the user."""

import importlib
import os
import sys
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from mole._version import __version__
from mole.cli import INTERRUPTED
from mole.cli.help_text import PlainCommand, example, joined, names_of, paragraphs, section, words_of
from mole.cli.terminal import InterruptedWork, complain, complain_of
from mole.cli.wrong_calls import CallError, UsageError, in_one_sentence
from mole.errors import MoleError

PROVIDER, DEVELOPER, BOTH = "Data provider", "Model developer", "Both"
LAYER, KEY = "--layer first-layer.safetensors", "--key provider.key"


class Entry(NamedTuple):
    """What the list of commands shows of one, without loading it, and where it is found.

    Attributes:
        panel: whose command it is.
        module: the file of this package that has the function of that name.
        summary: the first line of the function's docstring.
        example: arguments that can be typed, for the end of its help.
    """

    panel: str
    module: str
    summary: str
    example: str


COMMANDS = {
    "review": Entry(
        PROVIDER,
        "review",
        "Show what a layer's features give away, before you augment it. Nothing leaves your machine.",
        f"photos {LAYER} --out review.png",
    ),
    "keygen": Entry(
        PROVIDER,
        "keygen",
        "Make a key. It stays with you: whoever has it can undo the morphing. A key is never overwritten.",
        f"{LAYER} --data photos --out provider.key",
    ),
    "deliver": Entry(
        PROVIDER,
        "deliver",
        "Morph your data and build the augmented layer. Call again to resume interrupted work.",
        f"photos {LAYER} {KEY} --out delivery",
    ),
    "morph": Entry(
        PROVIDER,
        "morph",
        "Morph further data with the same key, for predictions: without labels or an augmented layer.",
        f"new-photos {LAYER} {KEY} --out requests",
    ),
    "ledger": Entry(
        PROVIDER,
        "ledger",
        "List what was delivered under a key, from the ledger beside it and the one in your own folder.",
        "provider.key",
    ),
    "recover": Entry(
        PROVIDER,
        "check",
        "Get the images back from a delivery, in the order of your data: arrays, a table or PNG files.",
        f"delivery {KEY} --out recovered.npz",
    ),
    "export-head": Entry(
        PROVIDER,
        "export_head",
        "Turn a head that the developer trained on a protected delivery into one for your own images.",
        f"head.safetensors {LAYER} {KEY} --out head.onnx",
    ),
    "calibrate": Entry(
        PROVIDER,
        "calibrate",
        "Make a head's probabilities right on labelled images of your own, at home.",
        "photos --front front.onnx --head head.onnx --out calibrated.onnx",
    ),
    "audit": Entry(
        PROVIDER,
        "audit",
        "Attack a delivery as others might; write audit.json and a page to read, audit.html.",
        f"delivery {KEY} {LAYER} --data photos --public similar-photos --out audit",
    ),
    "export-layer": Entry(
        DEVELOPER,
        "export_layer",
        "Write the first layer of a trained network, for the data provider.",
        "--network networks:resnet --weights model.pt --input-shape 3x32x32",
    ),
    "front": Entry(
        DEVELOPER,
        "front",
        "Make a front: an ONNX file that turns images into a few features, for protected deliveries.",
        "make --network networks:resnet --weights model.pt --input-shape 3x32x32 --public photos",
    ),
    "train": Entry(
        DEVELOPER,
        "train",
        "Train a network on a delivery, with the augmented layer in place of its first layer.",
        "delivery --network small_resnet --epochs 10 --out model.safetensors",
    ),
    "evaluate": Entry(
        DEVELOPER,
        "predict",
        "Score a trained network on a delivery with labels: accuracy, AUC and the confusion matrix.",
        "delivery --checkpoint model.safetensors --split test",
    ),
    "predict": Entry(
        BOTH,
        "predict",
        "Run a trained network on morphed requests, or front and head on your own images: a Parquet file.",
        "requests --checkpoint model.safetensors --out predictions.parquet",
    ),
    "info": Entry(
        BOTH,
        "info",
        "Show what a delivery, a layer, a key or a checkpoint holds; of a key, nothing that is secret.",
        "first-layer.safetensors",
    ),
    "verify": Entry(
        BOTH,
        "check",
        "Check every byte and row of a delivery, and that its layer fits its data. Needs no key.",
        "delivery",
    ),
    "analyse": Entry(
        BOTH,
        "analyse",
        "Show what the paper promises for a first layer, what it costs, and what counting gives.",
        f"{LAYER} --kappa 3 --network vgg16 --images 60000",
    ),
    "experiment": Entry(
        BOTH,
        "experiment",
        "Measure what the documents say, and what the paper says, on images of your own.",
        "frontier --data photos.npz --public other-photos.npz --out results",
    ),
    "demo": Entry(
        BOTH,
        "demo",
        "Play both roles on Fashion-MNIST: export, review, deliver, verify, train three ways, audit.",
        "--out mole-demo",
    ),
}


class Commands(TyperGroup):
    """Lists every command by its entry, and loads the one that is called."""

    def __init__(self, **settings: Any) -> None:
        listed = {name: PlainCommand(name, help=entry.summary) for name, entry in COMMANDS.items()}
        super().__init__(**{**settings, "commands": listed})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by whose they are."""
        width = formatter.width
        by_panel = (
            section(
                panel,
                [(name, entry.summary) for name, entry in COMMANDS.items() if entry.panel == panel],
                width,
            )
            for panel in (PROVIDER, DEVELOPER, BOTH)
        )
        options = [(names_of(part), words_of(part)) for part in self.get_params(ctx)]
        formatter.write(
            joined(
                [
                    "Usage: mole COMMAND [OPTIONS]",
                    *paragraphs(self.help or "", width),
                    *(block for blocks in by_panel for block in blocks),
                    *section("Options", options, width),
                    example(self.epilog or "", width),
                ]
            )
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments call, and those that are left for it."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed if name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """A command with its options, from the function of its name."""
    entry = COMMANDS[name]
    function = getattr(importlib.import_module(f"mole.cli.{entry.module}"), name.replace("-", "_"))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=PlainCommand, epilog=f"Example: mole {name} {entry.example}")(function)
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=Commands,
    help="Hand images over as morphed data. It is obfuscation, not encryption.",
    epilog="Example: mole demo",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those may be secret
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
            code = app(sys.argv[1:] or ["--help"], prog_name="mole", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except MoleError as error:
        complain_of(error)
        sys.exit(2 if isinstance(error, CallError) else 1)
    except UsageError as error:
        complain(in_one_sentence(error))
        sys.exit(2)
    except typer.Abort:  # the terminal closed where something was asked for
        complain("nothing was typed, and nothing was written; call again to start over")
        sys.exit(1)
    except InterruptedWork as stop:
        complain(f"interrupted: {stop}")
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:  # stdout is a closed pipe, or a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            complain(f"the output cannot be written: {error.strerror}")
        sys.exit(1)
    if code == INTERRUPTED:  # typer turns Ctrl-C into this, and says nothing
        complain("interrupted: nothing was written; call again to start over")
    sys.exit(code or 0)
