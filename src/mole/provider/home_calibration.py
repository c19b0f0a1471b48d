"""Calibrates a head on labelled images of the provider's own, or adapts it, and says what that gains.

What it gains is counted on images that were held out: each fifth is scored by what the others decided.
"""

from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError
from mole.progress import Progress, no_progress
from mole.protection.adapting import adapted
from mole.protection.calibration import EVEN, FOLDS, calibration, held_out
from mole.protection.head_file import HomeHead
from mole.provider.at_home import AtHome, other_classes
from mole.scores import Score
from mole.sources.opening import open_source
from mole.sources.source import Source

FEWEST = 20  # images: fewer decide nothing

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibrated head, and how good it was before and is now.

    Attributes:
        home: the head, with what it was calibrated to.
        before: scores of the head as it was.
        after: scores of calibrated heads on images that they were not calibrated on.
        is_adapted: whether its weights were corrected: it has then learned from clean images.
    """

    home: HomeHead
    before: Score
    after: Score
    is_adapted: bool


def calibrate(
    at_home: AtHome,
    data: str | PathLike[str] | Source,
    *,
    adapt: bool = False,
    progress: Progress = no_progress,
) -> Calibrated:
    """Make probabilities right on labelled images: a temperature, intercepts, of two classes a threshold.

        calibrated = calibrate(AtHome.open("front.onnx", "head.onnx"), "photos")
        write_head(Path("calibrated.onnx"), calibrated.home)

    Args:
        at_home: front and head.
        data: labelled images.
        adapt: correct the head's weights too, if images that were held out show that it helps. What it
            learns then is not covered by any certificate: such a head is for use at home alone.
        progress: told how many images have been seen.

    Raises:
        ParameterError: if the images have no labels or others than the head, are of one class alone, or are
            too few; or if the head is too large to be adapted.
    """
    source, home = open_source(data), at_home.home
    if others := other_classes(source, home):
        raise ParameterError(f"{others}: give images of the head's classes")
    rows, known = at_home.labelled_features(source, progress)
    if known is None:
        raise ParameterError("images without labels cannot calibrate a head: give images with labels")
    rows, labels = rows[known >= 0], known[known >= 0]
    if len(labels) < FEWEST:
        raise ParameterError(
            f"{len(labels)} labelled images are too few to calibrate: give {FEWEST} or more"
        )
    chances, answers = np.empty((len(labels), home.head.classes)), np.empty_like(labels)
    parts = held_out(labels)
    if parts is None:
        raise ParameterError(
            "all images but one are of one class, too few to calibrate: give two or more of another class"
        )
    for part in range(FOLDS):
        out = parts == part
        fitted, _ = _fitted(home, rows[~out], labels[~out], adapt=adapt)
        chances[out] = fitted.head.probabilities(rows[out])
        answers[out] = fitted.answers(chances[out])
    best, is_adapted = _fitted(home, rows, labels, adapt=adapt)
    before = home.head.probabilities(rows)
    return Calibrated(
        best, _score(before, home.answers(before), labels), _score(chances, answers, labels), is_adapted
    )


def _fitted(home: HomeHead, rows: Floats, labels: Labels, *, adapt: bool) -> tuple[HomeHead, bool]:
    """The head as these images want it, and whether they corrected its weights."""
    if adapt and (head := adapted(home.head, rows, labels)) is not None:
        return replace(home, head=head, threshold=EVEN), True
    found = calibration(home.head.scores(rows), labels)
    return replace(home, head=found.apply(home.head), threshold=found.threshold), False


def _score(chances: Floats, answers: Labels, labels: Labels) -> Score:
    loss = -np.log(np.maximum(chances[np.arange(len(labels)), labels], 1e-30)).mean()
    return Score(float(loss), float((answers == labels).mean()), labels, chances)
