"""What was measured, counted and published, as the page of the paper's claims puts it into words."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mole.analysis.figure import Figure

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs/results", "benchmarks/results", "results")
NOT_YET = "not yet measured"
NOTHING = "-"
Row = dict[str, Any]


class Claim(NamedTuple):
    """One claim; what is empty in a table is a dash."""

    where: str
    what: str
    published: str
    formula: str = NOTHING
    measured: str = NOTHING
    remark: str = ""


def result(name: str, root: Path | None = None) -> Row | None:
    """A committed result by its name; None where there is none yet."""
    for folder in FOLDERS:
        path = (root or ROOT) / folder / f"{name}.json"
        if path.is_file():
            read: Row = json.loads(path.read_text())
            return read
    return None


def needed(name: str) -> Row:
    """A result that has to be there."""
    read = result(name)
    if read is None:
        raise SystemExit(f"there is no result '{name}' in {', '.join(FOLDERS)}")
    return read


def figures(name: str) -> dict[str, Figure]:
    """The analysis of one of the paper's settings, by name."""
    return {one["name"]: Figure(**one) for one in needed(f"analysis-{name}")["figures"]}


def if_there(name: str, words: Callable[[Row], str]) -> str:
    """What a result says, if it is there."""
    read = result(name)
    return NOT_YET if read is None else words(read)


def attack(name: str, core: str = "gaussian", kappa: int = 1) -> Row:
    """What an attack of the audit found in the paper's setting, on CIFAR-10."""
    settings = needed("attacks")["settings"]
    found: Row = next(one for one in settings if (one["core"], one["kappa"]) == (core, kappa))
    attacked: Row = found["attacks"][name]
    return attacked


def numbers(found: Row) -> list[int]:
    """The whole numbers in an attack's own words."""
    return [
        int(one.replace(",", "")) for one in re.findall(r"(?<![.\d^-])\d[\d,]*(?![\d.^])", found["words"])
    ]


def network(name: str, what: str, blocks: str) -> float:
    """What a layer costs a network, times plain."""
    rows = needed("networks")["results"]
    wanted = (name, what, blocks)
    return float(next(r["times_plain"] for r in rows if (r["network"], r["what"], r["blocks"]) == wanted))


def accuracy(read: Row, data: str, arm: str) -> str:
    """Mean and deviation of an arm of table 2; the first layer from other images, where it matters."""
    rows = [
        row
        for row in read["rows"]
        if (row["data"], row["arm"]) == (data, arm) and row["setting"] in (None, "other images")
    ]
    if not rows:
        return NOT_YET
    found = rows[0]["accuracy"]
    deviation = "" if found["sd"] is None else f" +- {100 * found['sd']:.1f}"
    return f"{100 * found['mean']:.1f} %{deviation}"


def difference(read: Row, data: str, arm: str) -> str:
    """How far an arm is below plain data, seed by seed."""
    pairs = [
        pair
        for pair in read["pairs"]
        if (pair["data"], pair["arm"], pair.get("measure", "accuracy")) == (data, arm, "accuracy")
        and pair["setting"] in (None, "other images")
    ]
    if not pairs:
        return NOT_YET
    error = pairs[0]["standard_error"]
    spread = "" if error is None else f", standard error {100 * error:.1f}"
    return f"{-100 * pairs[0]['difference']:+.1f} points{spread}"


def peer_times(name: str) -> tuple[float, float]:
    """A peer's processor time over the plain layer's, and its bytes over the image's."""
    read = needed("peers")["results"]
    peer, plain = read[name], read["rows"]
    seconds = (peer["provider_s"] + peer["developer_s"]) / plain["plain_s"]
    sent = (peer["bytes"] + peer.get("bytes_of_features", 0)) / plain["bytes_in_8_bits"]
    return seconds, sent
