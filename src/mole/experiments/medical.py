"""The paper's three arms on medical images, which is whom this is for: accuracy, and area under the curve.

Classes of such data are rarely equally frequent, and then accuracy says little: always to answer with the
more frequent one scores well. The area under the curve does not depend on that.

Images of 28x28 are stretched to 32x32, for VGG-16. Where the public images have other colours, the
developer's network is trained on them in those of the medical ones.
"""

from matplotlib.figure import Figure

from mole.experiments.arm_training import Budget
from mole.experiments.arms_report import drawing, table
from mole.experiments.compared_arms import OTHER, Way, compare
from mole.experiments.experiment import Drawing, Experiment, Preset, Request, Result
from mole.experiments.table2 import BUDGETS as TABLE2
from mole.experiments.table2 import in_words

WAYS = (Way("plain"), Way("augmented", OTHER), Way("without"))
BUDGETS: dict[Preset, Budget] = {
    "paper": TABLE2["paper"],
    "cpu": Budget(narrower=8, epochs=10, learning_rate=0.005),
    "tiny": TABLE2["tiny"],
}
ALT = (
    "Area under the curve of each arm, a dot for each seed: plain data and morphed data with the augmented "
    "layer lie together, morphed data without it lies below"
)


def measure(request: Request) -> Result:
    """The three arms on every set of images; first layers come from other images alone."""
    return compare(request, BUDGETS[request.preset], WAYS)


def report(result: Result) -> str:
    """The table, and what was done for it."""
    return f"{in_words(result)}\n\n{table(result, ['accuracy', 'auc'], {})}"


def draw(result: Result) -> Figure:
    """Areas, seed by seed."""
    return drawing(result, "auc")


EXPERIMENT = Experiment(
    summary="accuracy and AUC of the paper's arms on medical images",
    measure=measure,
    report=report,
    drawings={"": Drawing(draw, ALT)},
)
