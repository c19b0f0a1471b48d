"""The paper's table 2: what the augmented layer is worth to a VGG-16, in up to six arms.

The paper has three: plain data, morphed data with the augmented layer, morphed data without it. Three more
show what each step costs, on the first set of images: a first layer frozen at random, channels that are
not shuffled, and plain data with the first layer frozen at the weights that the others have.
"""

from dataclasses import replace

from mole.experiments.arm_training import Budget, Budgets
from mole.experiments.arms_report import NAMES, drawing, table
from mole.experiments.compared_arms import OTHER, SAME, Way, compare
from mole.experiments.experiment import Drawing, Experiment, Preset, Request, Result
from mole.torch.learning_rules import StepDecay

WAYS = (
    Way("plain"),
    Way("augmented", OTHER),
    Way("without"),
    Way("augmented", SAME, first_only=True),
    Way("no shuffle", OTHER, first_only=True),
    Way("random", first_only=True),
    Way("frozen", OTHER, first_only=True),
)
CPU = Budget(narrower=8, epochs=8, learning_rate=0.003, images=10_000)
BUDGETS: dict[Preset, Budgets] = {
    "paper": Budgets(Budget(narrower=1, epochs=300, learning_rate=0.001, decay=StepDecay(every=60))),
    "cpu": Budgets(CPU, many=replace(CPU, epochs=24)),
    "tiny": Budgets(Budget(narrower=16, epochs=2, learning_rate=0.005, images=128, tests=64)),
}
PUBLISHED = {
    ("cifar10", "plain"): "87.2 %",
    ("cifar10", "augmented"): "87.4 %",
    ("cifar10", "without"): "15.8 %",
    ("cifar100", "plain"): "55.9 %",
    ("cifar100", "augmented"): "56.4 %",
    ("cifar100", "without"): "2.01 %",
}
ALT = (
    "Test accuracy of each arm, a dot for each seed: plain data and morphed data with the augmented layer "
    "lie together, morphed data without it lies far below"
)


def measure(request: Request) -> Result:
    """Every arm on every set of images."""
    return compare(request, BUDGETS[request.preset], WAYS)


def report(result: Result) -> str:
    """The table, and what was done for it."""
    return f"{in_words(result)}\n\n{table(result, ['accuracy'], PUBLISHED)}"


def in_words(result: Result) -> str:
    """How the arms were trained."""
    budget, seeds = result["budget"], result["seeds"]
    narrower = budget["narrower"]
    width = "" if narrower == 1 else f", its convolutions {narrower} times narrower than the paper's"
    steps = budget["decay"]
    rule = (
        f"AdamW with one cycle of the learning rate up to {budget['learning_rate']:g}"
        if steps is None
        else f"SGD with momentum {steps['momentum']:g}, learning rate {budget['learning_rate']:g} times "
        f"{steps['factor']:g} every {steps['every']} epochs"
    )
    images = "; ".join(
        f"{NAMES.get(one['data'], one['data'])}: {one['train_images']:,} training and "
        f"{one['test_images']:,} test images, {one['epochs']} epochs"
        for one in result["sets"]
    )
    return (
        f"VGG-16 with batch normalisation{width}; batches of {budget['batch']}; {rule}; "
        f"dropout {budget['dropout']:g}; kappa {budget['kappa']}, "
        f"{budget['core']} core. {images}. "
        f"Mean and standard deviation of {seeds} {'seed' if seeds == 1 else 'seeds'}; differences to plain "
        "data, in points, are taken seed by seed and stand with their standard error."
    )


EXPERIMENT = Experiment(
    summary="what the augmented layer is worth (table 2 of the paper)",
    measure=measure,
    report=report,
    drawings={"": Drawing(drawing, ALT)},
)
