"""The results of an experiment as files: JSON, Markdown, and drawings as PNG and SVG.

All of them have the experiment's name, and the JSON comes last: where it is, the others are.
"""

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure

from mole._version import __version__
from mole.experiments.experiment import Experiment, Request, Result
from mole.storage.atomic import new_file, private_folder

PICTURES = ("svg", "png")
DOTS = 150  # an inch, of PNG files
STYLE: Any = {"svg.hashsalt": "mole", "svg.fonttype": "none", "font.size": 9}


def files_of(folder: Path, name: str, experiment: Experiment) -> list[Path]:
    """Every file that an experiment writes; the one that is written last comes last."""
    drawn = [folder / f"{stem}.{kind}" for stem in _stems(name, experiment).values() for kind in PICTURES]
    return [*drawn, folder / f"{name}.md", folder / f"{name}.json"]


def run(name: str, experiment: Experiment, request: Request) -> Result:
    """Do an experiment; its result, with what it was made from."""
    head: Result = {"experiment": name, "version": __version__, "preset": request.preset}
    if "seeds" in experiment.takes:
        head["seeds"] = request.seeds
    return {**head, "machine": machine(), **experiment.measure(request)}


def write_results(folder: Path, name: str, experiment: Experiment, result: Result) -> None:
    """Write everything."""
    private_folder(folder)
    stems = _stems(name, experiment)
    for suffix, drawing in experiment.drawings.items():
        with mpl.rc_context(STYLE):
            figure = drawing.draw(result)
            for kind in PICTURES:
                save_drawing(figure, folder / f"{stems[suffix]}.{kind}")
    with new_file(folder / f"{name}.md") as file:
        file.write_text(markdown_of(name, experiment, result))
    with new_file(folder / f"{name}.json") as file:
        file.write_text(json.dumps(result, indent=1) + "\n")


def markdown_of(name: str, experiment: Experiment, result: Result) -> str:
    """A result as a page: heading, report, drawings with words for those who cannot see them."""
    stems = _stems(name, experiment)
    pictures = (f"![{drawing.alt}]({stems[suffix]}.svg)" for suffix, drawing in experiment.drawings.items())
    heading = f"# {name}: {experiment.summary}"
    return "\n\n".join([heading, experiment.report(result), *pictures]) + "\n"


def save_drawing(figure: Figure, path: Path) -> None:
    """A drawing as a file, PNG or SVG by its ending; the same bytes each time."""
    kind = path.suffix[1:]
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STYLE), new_file(path) as file:
        figure.savefig(file, format=kind, dpi=DOTS, metadata=metadata)


def machine() -> dict[str, Any]:
    """Enough to judge whether two results can be compared."""
    return {
        "processor": next(_processors(), platform.processor() or platform.machine()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
    }


def _processors() -> Iterator[str]:
    """Names of processors, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return
    yield from (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))


def _stems(name: str, experiment: Experiment) -> dict[str, str]:
    return {suffix: f"{name}-{suffix}" if suffix else name for suffix in experiment.drawings}
