"""How the demo ends: its own delivery is attacked, and the page says what came of it."""

from pathlib import Path

import mole
from mole.audit.audit import audit
from mole.audit.figures import paper_figures
from mole.audit.files import write_report
from mole.audit.of_delivery import Known, subject_of_delivery
from mole.audit.report import Report
from mole.data.opening import open_source
from mole.files.store import LocalStore

BUDGET = 60.0  # seconds: the demo should not keep anybody waiting


def attack_delivery(folder: Path, layer: mole.FirstLayer, key: mole.MorphKey) -> tuple[Report, Path]:
    """Audit the demo's delivery with what its provider has; the report, and its page."""
    known = Known(
        key=key,
        layer=layer,
        truth=open_source(str(folder / "private.npz")),
        public=open_source(str(folder / "public.npz")),
    )
    subject = subject_of_delivery(LocalStore(folder / "delivery"), known)
    report = audit(subject, plots=paper_figures(), budget=BUDGET)
    return report, write_report(report, folder / "audit")
