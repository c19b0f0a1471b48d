"""Attack a delivery, or a setting, with every attack we know of, and say what came of it.

    report = audit("delivery", key=key, layer="first-layer.safetensors", truth="photos")
    report.save("audit")

Each attack gets the view of its attacker; what it finds is scored, pictured and judged here.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from mole._version import __version__
from mole.analysis import Figure, LayerSizes, Setting, TileSizes, figures_of
from mole.attacks import ATTACKS
from mole.attacks.tools.attack import Attack, Finding
from mole.audit.advice import advice_on, taken_by
from mole.audit.costs import costs_of
from mole.audit.from_delivery import subject_of_delivery
from mole.audit.from_elsewhere import with_other, with_public
from mole.audit.from_setting import subject_of_setting
from mole.audit.headline import headline
from mole.audit.levels import Status
from mole.audit.particulars import BAD_SIGNATURE, Particulars
from mole.audit.pictures import pictures_of
from mole.audit.protected_run import Given, audit_protected, refuse_other
from mole.audit.report import AttackReport, Report
from mole.audit.scoring import score
from mole.audit.subject import FEWEST_IMAGES, FEWEST_SCORED, Subject
from mole.audit.tile_words import remarks_on
from mole.audit.trying import try_all
from mole.audit.verdicts import Tried, judged, verdicts_of
from mole.errors import MoleWarning, ParameterError
from mole.exchange.delivery import Delivery
from mole.exchange.layer_files import load_first_layer
from mole.exchange.shards import Dtype
from mole.foreign_text import shown
from mole.progress import Progress, no_progress
from mole.provider.keys import MorphKey
from mole.provider.sealing import opened_with
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import TilesLayout
from mole.scheme.morphing import CoreKind
from mole.sources.opening import open_source
from mole.sources.source import Source
from mole.storage.identities import Identity

Address = str | os.PathLike[str]

BUDGET = 600.0
NOT_SIGNED_SO = "The signature in this delivery does not belong to it: get it again, or sign it anew."
TITLES = {True: "What this delivery gives away", False: "What this setting would give away"}
# The published figure about each attack; the paper does not know the others.
PUBLISHED = {
    "brute-force-core": "core guess",
    "channel-search": "channel order guess",
    "channel-fingerprint": "channel order guess",
    "reversing": "reversing guess",
    "known-pairs": "pairs",
}


def audit(
    delivery: Delivery | Address,
    *,
    key: MorphKey | None = None,
    layer: FirstLayer | Address | None = None,
    truth: Source | Address | None = None,
    public: Source | Address | None = None,
    other: Delivery | Address | None = None,
    front: Address | None = None,
    skip_bad: bool = False,
    identity: Identity | None = None,
    by: str = "",
    receiver: str = "",
    budget: float = BUDGET,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Report:
    """Attack a delivery. Whatever is wrong with what you give is said before any attack begins.

    Args:
        delivery: a delivery, or its address.
        key: its key; without it nothing can be compared with the truth.
        layer: the developer's first layer, or its file; without it the developer's attacks are not tried.
        truth: the data that the delivery was made from, or its address; recovered with the key if missing.
        public: other images of the same kind, as an attacker may have, or their address; labelled ones
            help where the delivery has labels.
        other: another delivery, or requests, under the same key, or its address.
        front: of a protected delivery, the file of the front that it was made with; without it only the
            certificate is told.
        skip_bad: leave out public images that cannot be used, instead of stopping.
        identity: what opens a sealed delivery, where its key is not given.
        by: who makes this audit: a name for the page.
        receiver: who is to receive the delivery: a name for the page.
        budget: seconds after which no further attack begins; one that has begun is not cut off.
        seed: what the attacks' random numbers follow from.
        progress: called with the attacks done and the attacks to do.

    Raises:
        DeliveryError: if the key is another delivery's.
        FileError: if the front is.
        ParameterError: if a front is given for a delivery that is not protected.
    """
    opened = opened_with(delivery, key, identity)
    first = None if layer is None else load_first_layer(layer)
    source = None if truth is None else open_source(truth, labels=False)
    if opened.manifest.protection is not None:
        refuse_other(other)
        similar = None if public is None else open_source(public)
        given = Given(key=key, layer=first, source=source, public=similar, front=front, skip_bad=skip_bad)
        particulars = Particulars.of(opened)
        doubts = [NOT_SIGNED_SO] if particulars.signature == BAD_SIGNATURE else []
        report = audit_protected(opened, given, doubts, budget=budget, seed=seed, progress=progress)
        return replace(report, delivery=particulars, by=shown(by), receiver=shown(receiver))
    if front is not None:
        raise ParameterError(f"{opened.label} is not protected, and has no front: leave it out")
    subject = subject_of_delivery(opened, key=key, layer=first, truth=source)
    if public is not None:
        subject = with_public(subject, opened.manifest, open_source(public), skip_bad=skip_bad)
    if other is not None:
        subject = with_other(subject, opened, opened_with(other, key, identity), key)
    particulars = Particulars.of(opened)
    if particulars.signature == BAD_SIGNATURE:
        subject = replace(subject, warnings=(*subject.warnings, NOT_SIGNED_SO))
    for warning in subject.warnings:
        warnings.warn(warning, MoleWarning, stacklevel=3)  # past `mole.audit(...)`, which calls this
    report = audit_subject(subject, budget=budget, seed=seed, progress=progress)
    return replace(report, delivery=particulars, by=shown(by), receiver=shown(receiver))


def audit_setting(
    layer: FirstLayer | Address,
    *,
    kappa: int = 1,
    tile: int | None = None,
    core: CoreKind = "orthogonal",
    dtype: Dtype = "float32",
    by: str = "",
    budget: float = BUDGET,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Report:
    """Attack what a setting would deliver, with images that come with the software.

    Args:
        layer: the developer's first layer, or its file.
        kappa: how many times the core repeats.
        tile: side of square tiles as blocks, instead of kappa.
        core: which kind of core.
        dtype: how morphed values would be stored.
        by: who makes this audit: a name for the page.
        budget: seconds after which no further attack begins; one that has begun is not cut off.
        seed: what the attacks' random numbers follow from.
        progress: called with the attacks done and the attacks to do.
    """
    subject = subject_of_setting(load_first_layer(layer), kappa=kappa, tile=tile, core=core, dtype=dtype)
    return replace(audit_subject(subject, budget=budget, seed=seed, progress=progress), by=shown(by))


def audit_subject(
    subject: Subject,
    *,
    attacks: Sequence[Attack] = ATTACKS,
    budget: float = BUDGET,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Report:
    """Attack a subject with these attacks, in this order."""
    figures = _figures(subject)
    bounds, costs = published_bounds(figures), costs_of(subject.uncut, figures)
    tried = try_all(
        attacks,
        lambda attack, rng: attack.run(subject.view(attack.view), rng),
        partial(_compared, subject),
        budget=budget, seed=seed, progress=progress,
    )  # fmt: skip
    judgements = [judged(replace(one, published=bounds.get(one.attack.name))) for one in tried]
    taken = taken_by(subject, judgements)
    reports = tuple(
        replace(one, advice=advice_on([one.attack], taken))
        if one.status in (Status.SUCCEEDED, Status.PARTLY)
        else one
        for one in judgements
    )
    verdicts = verdicts_of(reports, Tried.of(subject), taken)
    return Report(
        subject=subject.facts,
        headline=headline(verdicts, "delivery" if subject.private else "setting", sealed=subject.sealed),
        date=datetime.now(UTC).date().isoformat(),
        warnings=(*subject.warnings, *_too_few(subject)),
        verdicts=verdicts,
        remarks=remarks_on(subject, reports),
        attacks=reports,
        costs=costs,
        version=__version__,
        title=TITLES[subject.private],
        private=subject.private,
    )


def _figures(subject: Subject) -> Mapping[str, Figure]:
    """What is published about a subject and what counting gives, by name; nothing without a first layer."""
    whole = subject.uncut
    if whole.layer is None:
        return {}
    tiles = None
    if whole.layout == TilesLayout.name:
        tiles = TileSizes.of(whole.layer, TilesLayout(whole.input_shape, whole.kappa).tile)
    setting = Setting(
        layer=LayerSizes.of(whole.layer),
        kappa=whole.kappa,
        images=subject.rows or len(subject.morphed),
        tiles=tiles,
    )
    return {figure.name: figure for figure in figures_of(setting)}


def published_bounds(figures: Mapping[str, Figure]) -> Mapping[str, str]:
    """The published figure by name of attack, in words; attacks that the paper does not know have none."""
    return {
        attack: f"{figures[name].what}: {figures[name].words('by_formula')}"
        for attack, name in PUBLISHED.items()
        if name in figures
    }


def _too_few(subject: Subject) -> tuple[str, ...]:
    if subject.scored >= FEWEST_SCORED:
        return ()
    return (
        f"There are only {len(subject.morphed)} rows: with fewer than {FEWEST_IMAGES} nothing that "
        "attacks found could be compared with the truth.",
    )


def _compared(subject: Subject, attack: Attack, finding: Finding, seconds: float) -> AttackReport:
    """What was found beside the truth, not yet judged."""
    finding, truth = _first(finding, subject.scored), subject.truth
    enough = truth is not None and min(len(truth.plain), subject.scored) >= FEWEST_SCORED
    return AttackReport(
        attack,
        Status.NOT_COMPARED,
        finding.words if enough else f"{finding.words} There was too little to compare it with.",
        seconds=round(seconds, 2),
        score=score(finding, truth) if truth is not None and enough else None,
        facts=dict(finding.facts),
        pictures=pictures_of(subject, attack, finding),
    )


def _first(finding: Finding, count: int) -> Finding:
    """The same finding, about no other rows than those that are compared."""
    return replace(
        finding,
        images=None if finding.images is None else finding.images[:count],
        maps=None if finding.maps is None else finding.maps[:count],
        distances=None if finding.distances is None else finding.distances[:count, :count],
    )
