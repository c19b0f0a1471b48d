"""A report as files: `audit.json` for machines, described in docs/format.md, and pages for people.

`audit.html` has everything, and `summary.html` is one sheet of paper to sign.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from mole.audit.page import render
from mole.audit.paper_figures import paper_figures
from mole.audit.report import AttackReport, Plot, Report, Verdict
from mole.audit.scoring import Score
from mole.audit.summary import render_summary
from mole.errors import DeliveryError
from mole.storage.atomic import new_folder, reason_of

FORMAT, VERSION = "mole-audit", 1
FILES = ("audit.json", "audit.html", "summary.html")  # all that an audit consists of
DIGITS = 6  # significant: what a measurement holds, and few enough to compare two audits by eye


def write_report(
    report: Report,
    folder: Path,
    *,
    pictures: bool = True,
    appendix: bool = True,
    summary: bool = False,
    replace_it: bool = False,
) -> Path:
    """Write a report into a new folder, for its owner alone; the page's path.

    Args:
        report: what was found.
        folder: a new one.
        pictures: whether anything shows an image.
        appendix: whether the paper's figures follow.
        summary: whether a page to sign is written as well.
        replace_it: whether another audit may be there, which is replaced when this one is complete.
    """
    check_place(folder, replace_it=replace_it)
    plots = paper_figures() if appendix and not report.certificates else ()  # they are of morphing
    if not pictures:
        report, plots = without_pictures(report), tuple(replace(plot, pictures=()) for plot in plots)
    contents = {"audit.json": to_json(report, plots), "audit.html": render(report, plots)}
    if summary:
        contents["summary.html"] = render_summary(report)
    try:
        with new_folder(folder, instead_of=FILES if replace_it else ()) as temporary:
            for name, text in contents.items():
                (temporary / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DeliveryError(f"{folder} cannot be written: {reason_of(error)}") from None
    return folder / "audit.html"


def check_place(folder: Path, *, replace_it: bool = False) -> None:
    """Refuse a folder that is there already, unless an audit may be replaced and it holds nothing else.

    Raises:
        DeliveryError: if something would be lost.
    """
    try:
        if not (folder.exists() or folder.is_symlink()):
            return
        is_folder = folder.is_dir() and not folder.is_symlink()
        others = [entry.name for entry in folder.iterdir() if entry.name not in FILES] if is_folder else []
        is_audit = is_folder and not others and (folder / "audit.json").is_file()
    except (OSError, ValueError) as error:
        raise DeliveryError(f"{folder} cannot be written: {reason_of(error)}") from None
    if not is_audit:
        raise DeliveryError(f"{folder} exists already, and is not just an audit: choose another name")
    if not replace_it:
        raise DeliveryError(
            f"{folder} exists already: choose another name, or replace it", advice={"replace": True}
        )


def without_pictures(report: Report) -> Report:
    """The same report, of which no page can show an image."""
    return replace(report, attacks=tuple(replace(attack, pictures=()) for attack in report.attacks))


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
        "date": report.date,
        "by": report.by,
        "receiver": report.receiver,
        "headline": report.headline,
        "delivery": None if report.delivery is None else asdict(report.delivery),
        "subject": _plain(report.subject),
        "warnings": list(report.warnings),
        "verdicts": [_verdict(verdict) for verdict in report.verdicts],
        "remarks": list(report.remarks),
        "attacks": [_attack(attack) for attack in report.attacks],
        "plots": [_plot(plot) for plot in plots],
        "costs": [asdict(cost) for cost in report.costs],
        **_protection(report),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _protection(report: Report) -> dict[str, Any]:
    """What only the audit of a protected delivery has."""
    if not report.certificates:
        return {}
    return {
        "certificates": [_plain(asdict(one)) for one in report.certificates],
        "promises": list(report.promises),
        "unsaid": list(report.unsaid),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "attacker": verdict.attacker.value,
        "who": verdict.who,
        "level": verdict.level.value,
        "fully_tested": verdict.fully_tested,
        "sentence": verdict.sentence,
        "advice": verdict.advice,
        **({} if verdict.promise is None else {"promise": verdict.promise.value}),
    }


def _attack(report: AttackReport) -> dict[str, Any]:
    attack = report.attack
    return {
        "name": attack.name,
        "title": attack.title,
        "attacker": attack.attacker.value,
        "source": attack.source,
        "advice": report.advice,
        "status": report.status.value,
        "words": report.words,
        "published": report.published,
        "seconds": _plain(report.seconds),
        "score": _plain(_measured(report.score)),
        "facts": _plain(report.facts),
        "pictures": [[picture.caption for picture in row] for row in report.pictures],
        **({"figures": [_plain(one.fields()) for one in report.figures]} if report.figures else {}),
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
