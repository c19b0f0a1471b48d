"""The audit as one page for people: no network, no scripts, nothing but the file itself."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mole.attacks.tools.attack import Attacker
from mole.audit.drawing import Plot
from mole.audit.report import AttackReport, Picture, Report, Status, Verdict
from mole.audit.wording import in_short, measured, plainly


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
