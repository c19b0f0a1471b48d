"""The audit as one page for people: no network, no script, nothing beside the file itself."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mole.attacks.tools.attack import DEVELOPER, INJECTOR, OUTSIDER, THIEF
from mole.audit.report import (
    BROKEN,
    FAILED,
    GAVE_UP,
    HOLDS,
    LEAKS,
    NOT_APPLICABLE,
    NOT_COMPARED,
    NOT_TRIED,
    PARTLY,
    SUCCEEDED,
    UNKNOWN,
    AttackReport,
    Picture,
    Plot,
    Report,
    Verdict,
)
from mole.audit.wording import in_short, measured, plainly
from mole.errors import ParameterError

# Words carry the meaning; the tone gives each its shape and colour.
TONES = {
    HOLDS: "good", LEAKS: "warn", BROKEN: "bad", UNKNOWN: "none",
    FAILED: "good", PARTLY: "warn", SUCCEEDED: "bad", NOT_APPLICABLE: "none", NOT_TRIED: "none",
    NOT_COMPARED: "none", GAVE_UP: "none",
}  # fmt: skip
LABELS = {
    HOLDS: "Holds", LEAKS: "Leaks", BROKEN: "Broken", UNKNOWN: "Not tested",
    FAILED: "Attack failed", PARTLY: "Attack partly succeeded", SUCCEEDED: "Attack succeeded",
    NOT_APPLICABLE: "Not applicable", NOT_TRIED: "Not tried", NOT_COMPARED: "Tried, not compared",
    GAVE_UP: "Gave up",
}  # fmt: skip
NAMES = {
    OUTSIDER: "the outsider", THIEF: "the holder of the whole delivery",
    DEVELOPER: "the curious developer", INJECTOR: "the injecting developer",
}  # fmt: skip
# What a drawing may consist of: nothing that runs, loads or leads anywhere.
DRAWN = {
    "svg", "title", "desc", "defs", "clippath", "g", "path", "rect", "circle", "line", "polyline", "use",
    "text", "tspan",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """The attacks of one attacker, those that ran first; and its verdict, if there is one."""

    number: int
    name: str
    verdict: Verdict | None
    tried: tuple[AttackReport, ...]
    untried: tuple[AttackReport, ...]


def render(report: Report) -> str:
    """The page as HTML: save it, open it, print it, hand it on.

    >>> page = render(Report({}, ("too few images",), (), (), (), (), "0.0"))
    >>> "too few images" in page, "<script" in page
    (True, False)
    """
    environment = Environment(
        loader=PackageLoader("mole", "audit"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        png=_address, plainly=plainly, measured=measured, in_short=in_short, drawing=_drawing
    )
    environment.globals.update(tone=TONES.__getitem__, label=LABELS.__getitem__)
    template = environment.get_template("page.html.j2")
    return template.render(report=report, groups=groups(report))


def groups(report: Report) -> list[Group]:
    """Attacks by attacker, in the order of the verdicts; attackers without a verdict come last."""
    verdicts = {verdict.attacker: verdict for verdict in report.verdicts}
    attackers = dict.fromkeys([*verdicts, *(attack.attacker for attack in report.attacks)])
    return [
        Group(
            number,
            NAMES.get(attacker, attacker),
            verdicts.get(attacker),
            _of(report.attacks, attacker, tried=True),
            _of(report.attacks, attacker, tried=False),
        )
        for number, attacker in enumerate(attackers, start=1)
    ]


def _of(attacks: Sequence[AttackReport], attacker: str, *, tried: bool) -> tuple[AttackReport, ...]:
    return tuple(
        attack
        for attack in attacks
        if attack.attacker == attacker and (attack.status in {NOT_APPLICABLE, NOT_TRIED}) is not tried
    )


def _address(picture: Picture) -> str:
    """A picture as an address that holds the picture itself."""
    return "data:image/png;base64," + base64.b64encode(picture.png).decode()


def _drawing(plot: Plot) -> Markup:
    """A plot's drawing, if it is nothing but a drawing: it goes into the page as it is."""
    tags = {tag.lower() for tag in re.findall(r"<[/!?]*\s*([^\s/>]*)", plot.svg)}
    reaches_out = re.search(
        r"""\son\w+\s*=|href\s*=\s*["']?(?!["']?#)|url\((?!#)|@import""", plot.svg, re.I
    )
    if not plot.svg.startswith("<svg") or not tags <= DRAWN or reaches_out:
        raise ParameterError(f"the drawing of '{plot.title}' is more than a drawing: make it anew")
    return Markup(plot.svg)  # noqa: S704  (checked above, and drawn by `mole.audit.pictures`)
