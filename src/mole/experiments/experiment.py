"""What an experiment is: a function that measures, a report, drawings; and what it is given to work with.

    EXPERIMENT = Experiment(
        summary="accuracy of three arms",
        measure=measure,                         # Request -> result for JSON
        report=report,                           # result -> Markdown
        drawings={"": Drawing(draw, "what it shows, for who cannot see it")},
    )

Each stands in a file of its own; `mole experiment` has them by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from matplotlib.figure import Figure

from mole.errors import ParameterError
from mole.experiments.image_sets import ImageSet
from mole.experiments.pieces import PieceStore
from mole.progress import Progress, no_progress
from mole.sources.source import Source

Result = dict[str, Any]
Say = Callable[[str], None]
Preset = Literal["paper", "cpu", "tiny"]
"""How much is done: what the paper did, what a CPU does in hours, what shows in seconds that it works."""
Option = Literal["data", "public", "front", "seeds", "peers"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
SEEDS = 3


def say_nothing(text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Request:
    """What was asked for, and what there is to work with.

    Attributes:
        preset: how much is done.
        store: keeps what is finished, so that interrupted work goes on: wrap each piece of work in
            `store.piece(facts, make)`.
        data: images with labels, in splits; none where the experiment takes none.
        public: other images, from another source.
        front: the developer's own front.
        peers: what the benchmark of peers measured, a JSON file.
        seeds: how often everything that depends on chance is repeated, with seeds 0, 1, 2 ...
        say: told how the work goes, a line at a time.
        progress: told how far the work at hand is.
    """

    preset: Preset
    store: PieceStore
    data: tuple[ImageSet, ...] = ()
    public: Source | None = None
    front: Path | None = None
    seeds: int = SEEDS
    say: Say = say_nothing
    progress: Progress = no_progress
    peers: Path | None = None


class Drawing(NamedTuple):
    """A drawing of a result, and what it shows in words."""

    draw: Callable[[Result], Figure]
    alt: str


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes:
        summary: what it measures, in some words.
        measure: does the work; a result for JSON.
        report: the result in Markdown, without a heading.
        drawings: by what their file names add to the experiment's name; '' for nothing.
        presets: those that it has.
        takes: what of a request it looks at.
        needs_public: whether data alone is not enough, and public images have to come with it.
    """

    summary: str
    measure: Callable[[Request], Result]
    report: Callable[[Result], str]
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    presets: tuple[Preset, ...] = PRESETS
    takes: tuple[Option, ...] = ("data", "public", "seeds")
    needs_public: bool = False

    def check(self, name: str, preset: Preset) -> None:
        """Refuse a preset that it does not have.

        Raises:
            ParameterError: with those that it has.
        """
        if preset not in self.presets:
            has = " and ".join(f"'{one}'" for one in self.presets)
            raise ParameterError(f"{name} has no preset '{preset}': it has {has}")
