"""What `mole train` does with a protected delivery, and what it tells of the head that it fitted."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mole.cli.terminal import say, show
from mole.cli.wrong_calls import CallError
from mole.exchange.delivery import Delivery
from mole.exchange.head_checkpoint import LINEAR_HEAD

if TYPE_CHECKING:
    from mole.torch import FittedHead

MEANING = (
    "These are noisy rows, on which nobody can do well. Without noise it does better: return {out} to the "
    "provider, whose mole export-head makes it fit for images at home."
)


def fits_head(delivery: Delivery, network: str | None, weights: Path | None) -> bool:
    """Whether a linear head is to be fitted, which starts from nothing."""
    if delivery.manifest.protection is None or network not in (None, LINEAR_HEAD):
        return False
    if weights is not None:
        raise CallError(
            f"--weights is for networks that learn step by step, and {LINEAR_HEAD} is fitted in one: leave "
            "it out"
        )
    return True


def tell_of_head(fitted: "FittedHead", out: Path, *, as_json: bool, quiet: bool) -> None:
    """What was learned, and what the figures mean."""
    accuracy = {split: score.accuracy for split, score in fitted.scores.items()}
    auc = {split: score.auc for split, score in fitted.scores.items() if score.auc is not None}
    facts: dict[str, Any] = {
        "model": str(out),
        "network": LINEAR_HEAD,
        "rows": fitted.rows,
        "sigma": round(fitted.sigma, 6),
        "accuracy": {
            split: round(share, 4) if as_json else percent(share) for split, share in accuracy.items()
        },
        "auc": {split: round(area, 4) for split, area in auc.items()},
    }
    show(facts, as_json=as_json)
    say(MEANING.format(out=out), quiet=quiet)


def percent(share: float) -> str:
    """A share for a person.

    >>> percent(0.7319)
    '73.2 %'
    """
    return f"{100 * share:.1f} %"
