"""Calibrates a head on labelled images of the provider's own, and says what that gains.

What it gains is counted on images that were held out: each fifth is scored by what the others decided.
"""

from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError
from mole.progress import Progress, no_progress
from mole.protection.calibration import calibration
from mole.protection.head import softmax
from mole.protection.head_file import HomeHead
from mole.provider.at_home import AtHome, other_classes
from mole.scores import Score
from mole.sources.opening import open_source
from mole.sources.source import Source

FOLDS = 5
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
    """

    home: HomeHead
    before: Score
    after: Score


def calibrate(
    at_home: AtHome, data: str | PathLike[str] | Source, *, progress: Progress = no_progress
) -> Calibrated:
    """Make probabilities right on labelled images: a temperature, intercepts, of two classes a threshold.

        calibrated = calibrate(AtHome.open("front.onnx", "head.onnx"), "photos")
        write_head(Path("calibrated.onnx"), calibrated.home)

    Raises:
        ParameterError: if the images have no labels or others than the head, are of one class alone, or are
            too few.
    """
    source, home = open_source(data), at_home.home
    if others := other_classes(source, home):
        raise ParameterError(f"{others}: give images of the head's classes")
    seen = at_home.look(source, progress)
    if seen.labels is None:
        raise ParameterError("images without labels cannot calibrate a head: give images with labels")
    known = seen.labels >= 0
    scores, labels = seen.scores[known], seen.labels[known]
    if len(labels) < FEWEST:
        raise ParameterError(
            f"{len(labels)} labelled images are too few to calibrate: give {FEWEST} or more"
        )
    chances, answers = np.empty_like(scores), np.empty_like(labels)
    folds = np.arange(len(labels)) % FOLDS
    for fold in range(FOLDS):
        out = folds == fold
        found = calibration(scores[~out], labels[~out])
        chances[out] = found.probabilities(scores[out])
        answers[out] = replace(home, threshold=found.threshold).answers(chances[out])
    found, before = calibration(scores, labels), softmax(scores)
    return Calibrated(
        replace(home, head=found.apply(home.head), threshold=found.threshold),
        _score(before, home.answers(before), labels),
        _score(chances, answers, labels),
    )


def _score(chances: Floats, answers: Labels, labels: Labels) -> Score:
    loss = -np.log(np.maximum(chances[np.arange(len(labels)), labels], 1e-30)).mean()
    return Score(float(loss), float((answers == labels).mean()), labels, chances)
