"""A report as files: `audit.json` for machines, described in docs/format.md, and `audit.html` for people.

The page needs no network and no scripts, nothing but the file itself.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mole.attacks.tools.attack import Attacker
from mole.audit.paper_figures import paper_figures
from mole.audit.report import AttackReport, Picture, Plot, Report, Status, Verdict
from mole.audit.scoring import Score
from mole.audit.wording import in_short, measured, plainly
from mole.errors import DeliveryError
from mole.storage.atomic import new_folder, reason_of

FORMAT, VERSION = "mole-audit", 1
DIGITS = 6  # significant: what a measurement holds, and few enough to compare two audits by eye


def write_report(report: Report, folder: Path) -> Path:
    """Write a report and the paper's figures into a new folder, for its owner alone; the page's path."""
    if folder.exists() or folder.is_symlink():
        raise DeliveryError(f"{folder} exists already: choose another name")
    plots = paper_figures()
    contents = {"audit.json": to_json(report, plots), "audit.html": render(report, plots)}
    try:
        with new_folder(folder) as temporary:
            for name, text in contents.items():
                (temporary / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DeliveryError(f"{folder} cannot be written: {reason_of(error)}") from None
    return folder / "audit.html"


def to_json(report: Report, plots: Sequence[Plot] = ()) -> str:
    """Everything in a report but its pictures and drawings, whose captions stay.

    >>> json.loads(to_json(Report(subject={"rows": 12}, version="0.0")))["subject"]
    {'rows': 12}
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "mole_version": report.version,
        "title": report.title,
        "subject": _plain(report.subject),
        "warnings": list(report.warnings),
        "verdicts": [_verdict(verdict) for verdict in report.verdicts],
        "attacks": [_attack(attack) for attack in report.attacks],
        "plots": [_plot(plot) for plot in plots],
        "costs": [asdict(cost) for cost in report.costs],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "attacker": verdict.attacker.value,
        "who": verdict.who,
        "level": verdict.level.value,
        "sentence": verdict.sentence,
        "advice": verdict.advice,
    }


def _attack(report: AttackReport) -> dict[str, Any]:
    attack = report.attack
    return {
        "name": attack.name,
        "title": attack.title,
        "attacker": attack.attacker.value,
        "source": attack.source,
        "advice": attack.advice,
        "status": report.status.value,
        "words": report.words,
        "published": report.published,
        "seconds": _plain(report.seconds),
        "score": _plain(_measured(report.score)),
        "facts": _plain(report.facts),
        "pictures": [[picture.caption for picture in row] for row in report.pictures],
    }


def _measured(score: Score | None) -> dict[str, Any]:
    """What was measured by name; what was not is left out."""
    values = {} if score is None else asdict(score)
    return {name: value for name, value in values.items() if value is not None}


def _plot(plot: Plot) -> dict[str, Any]:
    return {
        "title": plot.title,
        "words": plot.words,
        "columns": list(plot.columns),
        "rows": _plain(plot.rows),
        "pictures": [picture.caption for picture in plot.pictures],
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: names sorted, numbers rounded, and null for what is not a number."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(f"{float(value):.{DIGITS}g}") if np.isfinite(float(value)) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item) for item in value]
    raise TypeError(
        f"a {type(value).__name__} has no place in audit.json: turn it into numbers or text first"
    )


@dataclass(frozen=True)
class Group:
    """The attacks of one attacker, those that ran first; and the verdict on it, if there is one."""

    number: int
    attacker: Attacker
    verdict: Verdict | None
    tried: tuple[AttackReport, ...]
    untried: tuple[AttackReport, ...]


def render(report: Report, plots: Sequence[Plot] = ()) -> str:
    """The page as HTML: save it, open it, print it, hand it on.

    >>> page = render(Report(subject={}, warnings=("too few images",)))
    >>> "too few images" in page, "<script" in page
    (True, False)

    Args:
        report: what was found.
        plots: figures to show below it.
    """
    environment = Environment(
        loader=PackageLoader("mole", "audit"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        png=_address, plainly=plainly, measured=measured, in_short=in_short, drawing=_drawing
    )
    template = environment.get_template("page.html.j2")
    return template.render(report=report, groups=groups(report), plots=plots)


def groups(report: Report) -> list[Group]:
    """Attacks by attacker, in the order of the verdicts; attackers without a verdict come last."""
    verdicts = {verdict.attacker: verdict for verdict in report.verdicts}
    attackers = dict.fromkeys([*verdicts, *(one.attack.attacker for one in report.attacks)])
    return [
        Group(
            number,
            attacker,
            verdicts.get(attacker),
            _of(report.attacks, attacker, tried=True),
            _of(report.attacks, attacker, tried=False),
        )
        for number, attacker in enumerate(attackers, start=1)
    ]


def _of(attacks: Sequence[AttackReport], attacker: Attacker, *, tried: bool) -> tuple[AttackReport, ...]:
    return tuple(
        one
        for one in attacks
        if one.attack.attacker == attacker
        and (one.status in (Status.NOT_APPLICABLE, Status.NOT_TRIED)) is not tried
    )


def _address(picture: Picture) -> str:
    """A picture as an address that holds the picture itself."""
    return "data:image/png;base64," + base64.b64encode(picture.png).decode()


def _drawing(plot: Plot) -> Markup:
    """A plot's drawing, which goes into the page as it is."""
    return Markup(plot.svg)  # noqa: S704  (`line_plot` drew it, and escapes the words in it)
