"""The page of an audit: a report as HTML that loads nothing, runs nothing, and can be printed.

It needs no network and no scripts, nothing but the file itself.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mole.attacks.tools.attack import Somebody
from mole.audit.headline import NOT_SEALED, SEALED
from mole.audit.intervals import share
from mole.audit.levels import Level, Promise
from mole.audit.report import AttackReport, Picture, Plot, Report, Verdict
from mole.audit.verdicts import success
from mole.audit.wording import glossary, in_short, measured, plainly
from mole.foreign_text import shown

OPEN_LABELS = "This delivery is not sealed: whoever gets it can read the labels."
RUNNING = re.compile(r"[0-9A-Za-z-]{1,64}")  # what may stand in a style sheet


@dataclass(frozen=True)
class Group:
    """The attacks of one attacker, the strongest first, and the verdict on it, if there is one."""

    number: int
    attacker: Somebody
    verdict: Verdict | None
    tried: tuple[AttackReport, ...]
    untried: tuple[AttackReport, ...]


def render(report: Report, plots: Sequence[Plot] = ()) -> str:
    """The page as HTML: save it, open it, print it.

    >>> page = render(Report(subject={}, warnings=("too few images",)))
    >>> "too few images" in page, "<script" in page
    (True, False)

    Args:
        report: what was found.
        plots: the paper's figures, for the appendix.
    """
    has_pictures = any(attack.pictures for attack in report.attacks) or any(plot.pictures for plot in plots)
    name = "protected_page.html.j2" if report.certificates else "page.html.j2"
    alone = report.is_certificate_alone
    template = templates().get_template(name)
    return template.render(
        report=report,
        groups=groups(report) if report.is_promise_broken or not alone else [],
        alone=alone,
        plots=plots,
        particulars=particulars_of(report),
        sealing=_sealing(report),
        terms=glossary(report.attacks),
        labels=Level,
        promises=Promise,
        meanings={one.name: one.meaning for found in report.attacks for one in found.figures},
        has_pictures=has_pictures,
        running=running_title(report),
    )


def _sealing(report: Report) -> str | None:
    if report.delivery is None:
        return None
    if report.certificates:
        return None if report.delivery.recipients else OPEN_LABELS if report.delivery.labelled else None
    return SEALED if report.delivery.recipients else NOT_SEALED


def templates() -> Environment:
    """Where pages come from, and how values become words in them."""
    environment = Environment(
        loader=PackageLoader("mole", "audit"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        png=_address,
        plainly=plainly,
        measured=measured,
        in_short=in_short,
        drawing=_drawing,
        share=share,
        shown=shown,
    )
    return environment


def particulars_of(report: Report) -> dict[str, str]:
    """What ties a page to a delivery and to a day, by name; nobody's name where none was given."""
    told = {"Date of the audit": report.date, "Audited by": report.by, "Receiver": report.receiver}
    found = report.delivery
    if found is not None:
        told |= {
            "Delivery": shown(found.name),
            "Delivery id": shown(found.delivery_id),
            "Size": found.size,
            "Sealed": found.sealing,
            "Signature": found.signature,
        }
    return {name: words for name, words in told.items() if words}


def running_title(report: Report) -> str:
    """What stands on every sheet of paper; an identifier that is not a plain word is left out."""
    found = "" if report.delivery is None else report.delivery.delivery_id
    which = f", delivery {found}" if RUNNING.fullmatch(found) else ""
    date = f", {report.date}" if RUNNING.fullmatch(report.date) else ""
    return f"Morphed Learning, audit{which}{date}"


def groups(report: Report) -> list[Group]:
    """Attacks by attacker, in the order of the page; attackers without a verdict come last."""
    verdicts = {verdict.attacker: verdict for verdict in report.in_order}
    attackers = dict.fromkeys([*verdicts, *(one.attack.attacker for one in report.attacks)])
    return [
        Group(
            number,
            attacker,
            verdicts.get(attacker),
            tuple(sorted(_of(report.attacks, attacker, tried=True), key=success, reverse=True)),
            _of(report.attacks, attacker, tried=False),
        )
        for number, attacker in enumerate(attackers, start=1)
    ]


def _of(attacks: Sequence[AttackReport], attacker: Somebody, *, tried: bool) -> tuple[AttackReport, ...]:
    return tuple(one for one in attacks if one.attack.attacker == attacker and one.was_run is tried)


def _address(picture: Picture) -> str:
    """A picture as an address that holds the picture itself."""
    return "data:image/png;base64," + base64.b64encode(picture.png).decode()


def _drawing(plot: Plot) -> Markup:
    """A plot's drawing, which goes into the page as it is."""
    return Markup(plot.svg)  # noqa: S704  (`line_plot` drew it, and escapes the words in it)
