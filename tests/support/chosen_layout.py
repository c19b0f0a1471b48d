"""The layout that keys of this run have: `pytest --layout tiles` runs tests of deliveries with tiles."""

import os
from typing import Any

import pytest

CHOSEN = "MOLE_TESTS_LAYOUT"  # how the workers of a run, and processes that tests start, are told
SIDE = 4
about_rows = pytest.mark.skipif(  # as text, because it is asked when a test begins
    "config.getoption('--layout') != 'rows'", reason="it is about something that tiles do not have"
)


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--layout", choices=["rows", "tiles"], default=os.environ.get(CHOSEN, "rows"),
        help="how keys of tests of deliveries cut samples; tests that ask for kappa keep rows, and those "
        "about something that tiles do not have (a Linear layer) are skipped",
    )  # fmt: skip


def choose(config: pytest.Config) -> None:
    """Before any test is imported: some make keys then."""
    os.environ[CHOSEN] = config.getoption("--layout")


def tiles_chosen() -> bool:
    return os.environ.get(CHOSEN, "rows") == "tiles"


def cut(**options: Any) -> dict[str, Any]:
    """Options of `MorphKey.generate` for the chosen layout; whoever asks for kappa wants rows."""
    return {"tile": SIDE, **options} if tiles_chosen() and "kappa" not in options else options


def cut_options() -> list[str]:
    """Options of `mole keygen` for the chosen layout."""
    return ["--tile", str(SIDE)] if tiles_chosen() else []
