"""The audit for machines: `audit.json`, described in docs/format.md."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from mole.audit.page import render
from mole.audit.report import AttackReport, Plot, Report
from mole.errors import DeliveryError

FORMAT, VERSION = "mole-audit", 1
DIGITS = 6  # significant: what a measurement holds, and few enough to compare two audits by eye


def to_json(report: Report) -> str:
    """Everything in a report but its pictures and drawings, of which the captions stay.

    >>> text = to_json(Report({"rows": 12}, (), (), (), (), (), "0.0"))
    >>> json.loads(text)["subject"], to_json(Report({"rows": 12}, (), (), (), (), (), "0.0")) == text
    ({'rows': 12}, True)
    """
    told = {
        "format": FORMAT,
        "version": VERSION,
        "mole_version": report.version,
        "title": report.title,
        "subject": _plain(report.subject),
        "warnings": list(report.warnings),
        "verdicts": [_fields(verdict) for verdict in report.verdicts],
        "attacks": [_attack(attack) for attack in report.attacks],
        "plots": [_plot(plot) for plot in report.plots],
        "costs": [_fields(cost) for cost in report.costs],
    }
    return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _attack(attack: AttackReport) -> dict[str, Any]:
    captions = [[picture.caption for picture in row] for row in attack.pictures]
    return {**_fields(attack, without=("pictures",)), "pictures": captions}


def _plot(plot: Plot) -> dict[str, Any]:
    captions = [picture.caption for picture in plot.pictures]
    return {**_fields(plot, without=("svg", "pictures")), "pictures": captions}


def _fields(part: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """A dataclass as an object, in the order of its fields."""
    return {
        field.name: _plain(getattr(part, field.name)) for field in fields(part) if field.name not in without
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: names sorted, numbers rounded, and null for what is no number."""
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


PRIVATE = 0o700  # the page shows some of the provider's images


def write_report(report: Report, folder: Path) -> Path:
    """Write a report into a new folder; the page's path."""
    contents = {"audit.json": to_json(report), "audit.html": render(report)}
    unfinished = folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=PRIVATE, parents=True)
        for name, text in contents.items():
            (unfinished / name).write_text(text, encoding="utf-8")
        unfinished.rename(folder)
    except OSError as error:
        raise DeliveryError(f"{folder} cannot be written: {error.strerror}") from None
    finally:  # after an interruption, too: it shows private images
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder / "audit.html"
