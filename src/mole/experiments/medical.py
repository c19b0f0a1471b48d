"""The paper's three arms on medical images, which is whom this is for: accuracy, and area under the curve.

Classes of such data are rarely equally frequent, and then accuracy says little: always to answer with the
more frequent one scores well. The area under the curve does not depend on that.

    mole experiment medical --data pneumoniamnist.npz --data pathmnist.npz --public cifar100.npz

Networks and budgets are those of table 2. Images of 28x28 are stretched to 32x32, for VGG-16.
Where the public images have other colours, the developer's network is trained on them in those of the
medical ones: photographs in grey, for X-rays.
"""

from matplotlib.figure import Figure

from mole.experiments.arms_report import NAMES, drawing, table
from mole.experiments.compared_arms import OTHER, Way, compare
from mole.experiments.experiment import Drawing, Experiment, Request, Result
from mole.experiments.table2 import BUDGETS, in_words

WAYS = (Way("plain"), Way("augmented", OTHER), Way("without"))
ALT = (
    "Area under the curve of each arm, a dot for each seed: plain data and morphed data with the augmented "
    "layer lie together, morphed data without it lies below"
)


def measure(request: Request) -> Result:
    """The three arms on every set of images; first layers come from other images alone."""
    return compare(request, BUDGETS[request.preset], WAYS)


def report(result: Result) -> str:
    """The table, what was done for it, and what accuracy has to be compared with."""
    frequent = ", ".join(
        f"{100 * one['most_frequent_class']:.1f} % ({NAMES.get(one['data'], one['data'])})"
        for one in result["sets"]
    )
    return (
        f"{in_words(result)}\n\n{table(result, ['accuracy', 'auc'], {})}\n\n"
        f"Always to answer with the most frequent class scores {frequent}."
    )


def draw(result: Result) -> Figure:
    """Areas, seed by seed."""
    return drawing(result, "auc")


EXPERIMENT = Experiment(
    summary="accuracy and AUC of the paper's arms on medical images",
    measure=measure,
    report=report,
    drawings={"": Drawing(draw, ALT)},
)
