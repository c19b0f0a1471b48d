"""An audit on one sheet of paper, to be signed: what leaves, for whom, and what attackers can do.

It has no pictures, so it can be filed and sent where the images themselves cannot go. It fits on one sheet
whatever a delivery is called and whatever its classes are called: long texts are cut, and say so.
"""

from collections.abc import Iterable, Mapping

from mole.audit.levels import Level
from mole.audit.page import running_title, templates
from mole.audit.particulars import Particulars
from mole.audit.report import Report, Verdict
from mole.errors import ParameterError
from mole.foreign_text import listed, shown

LONGEST_SENTENCE, LONGEST_HEADLINE, LONGEST_UNTRIED, SHORTEST_FINDING = 180, 180, 140, 60
FEW_NAMES, LONGEST_NAME, LONGEST_PERSON = 3, 20, 50
CUT = "… (all of it: audit.html)"


def render_summary(report: Report) -> str:
    """The sheet as HTML.

    Raises:
        ParameterError: if it was no delivery that was audited: there is nothing to sign for.
    """
    if report.delivery is None:
        raise ParameterError(
            "a summary is about a delivery, and this audit is about a setting: leave it out"
        )
    return templates().get_template("summary.html.j2").render(
        report=report,
        leaves=leaving(report.delivery, is_protected=bool(report.certificates)),
        receives=receiving(report),
        verdicts=[(verdict, in_brief(verdict)) for verdict in report.in_order],
        headline=shortened(report.headline, LONGEST_HEADLINE),
        running=running_title(report),
        by=shown(report.by, LONGEST_PERSON),
        nothing_found=Level.NOTHING_FOUND.label,
        broken=Level.BROKEN.label,
    )  # fmt: skip


def leaving(found: Particulars, *, is_protected: bool = False) -> dict[str, str]:
    """What leaves, by name; of a protected delivery no images do."""
    splits = _few(found.splits, found.splits)
    labelled, classes, columns = (_few(names) for names in (found.labelled, found.classes, found.columns))
    return {
        "Delivery": f"{shown(found.name, 48)}, id {shown(found.delivery_id, 40)}",
        **(
            {"Rows": f"{found.images:,}, each {found.shape} noisy features of an image: {splits}"}
            if is_protected
            else {"Images": f"{found.images:,}, each {found.shape}: {splits}"}
        ),
        "Labels": f"yes, in {labelled}" if found.labelled else "none",
        "Names of classes": classes or "none",
        "Other columns": columns or "none",
        "Augmented layer": _layer(found, is_protected),
        "Size": found.size,
    }


def _layer(found: Particulars, is_protected: bool) -> str:
    if not found.has_layer:
        return "none"
    return (
        "yes: it undoes the morphing, not the noise" if is_protected else "yes: most attacks start from it"
    )


def _few(names: Iterable[str], counts: Mapping[str, int] | None = None) -> str:
    """The first of some names, short, and how many more there are; each with its number if it has one."""
    told = [
        shown(name, LONGEST_NAME) if counts is None else f"{shown(name, LONGEST_NAME)} {counts[name]:,}"
        for name in names
    ]
    return listed(told, FEW_NAMES)


def receiving(report: Report) -> dict[str, str]:
    """To whom, by name; a receiver whom nobody named is left to be filled in."""
    found = report.delivery
    return {
        "Receiver": shown(report.receiver, LONGEST_PERSON),
        "First layer": "" if found is None else f"fingerprint {shown(found.layer_fingerprint, 40)}",
        "Sealed": "" if found is None else found.sealing,
        "Signature": "" if found is None else shown(found.signature, 64),
    }


def in_brief(verdict: Verdict) -> str:
    """A verdict's sentence that leaves room for the others, with all that it says of what was not tried."""
    sentence, untried = verdict.sentence, shortened(verdict.untried, LONGEST_UNTRIED)
    if len(sentence) <= LONGEST_SENTENCE or not untried:
        return shortened(sentence)
    found = sentence.removesuffix(verdict.untried).rstrip("; ")
    return f"{shortened(found, max(LONGEST_SENTENCE - len(untried), SHORTEST_FINDING))}; {untried}"


def shortened(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """A text that leaves room for the others: whole words of it.

    >>> shortened("learns something of the images", 18)
    'learns something… (all of it: audit.html)'
    """
    if len(text) <= longest:
        return text
    return text[:longest].rpartition(" ")[0].rstrip(",;:(") + CUT
