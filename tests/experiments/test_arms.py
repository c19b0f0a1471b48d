"""Arms of a training: what each feeds its network, and figures that follow from scores."""

import numpy as np
import pytest
import torch
from torch import nn

from mole.errors import ParameterError
from mole.experiments import table2
from mole.experiments.arm_training import Budget, Lesson, Training, key_of, read_layer
from mole.experiments.arms_report import NAMES, pairs_of, row_of, table
from mole.experiments.compared_arms import compare
from mole.experiments.duration import Duration
from mole.experiments.experiment import Request
from mole.experiments.image_sets import ImageSet, bundled_sources
from mole.experiments.pieces import PieceStore
from mole.provider.keys.key import morph
from mole.torch.networks import vgg16

CHANNELS = 4
BUDGET = Budget(narrower=16, epochs=1, learning_rate=0.01, images=64, tests=32)


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return ImageSet.of(bundled_sources()["private"], "clothes")


@pytest.fixture(scope="module")
def lesson(images) -> Lesson:
    return Lesson.of(images)


@pytest.fixture(scope="module")
def layer(lesson):
    """A first layer as an earlier training would have left it."""
    rng = np.random.default_rng(0)
    kernels, bias = rng.normal(size=(CHANNELS, 1, 3, 3)), rng.normal(size=CHANNELS)
    return read_layer({"first_layer": {"weight": kernels.tolist(), "bias": bias.tolist()}}, lesson.shape)


def first_features(lesson, arm, layer, seed=0, plain=None) -> torch.Tensor:
    """What an arm's network has after its first layer, for the first test images."""
    torch.manual_seed(seed)
    network = vgg16(lesson.shape, lesson.classes, narrower=16)
    change = Training(lesson, BUDGET, arm, seed).prepared(network, layer)
    rows = lesson.plain(lesson.test, 16)[0] if plain is None else plain
    with torch.no_grad():
        return network[0](torch.from_numpy(change(rows)))


def test_the_augmented_arm_has_the_plain_first_layers_features_in_another_order(lesson, layer):
    truth = first_features(lesson, "frozen", layer)
    order = key_of(lesson.shape, 0).channel_order(CHANNELS).copy()
    shuffled = first_features(lesson, "augmented", layer)
    assert not np.array_equal(order, np.arange(CHANNELS))
    assert torch.allclose(shuffled, truth[:, order], atol=1e-4)
    assert torch.allclose(first_features(lesson, "no shuffle", layer), truth, atol=1e-4)


def test_a_wrong_key_gives_no_such_features(lesson, layer):
    truth = first_features(lesson, "frozen", layer)
    plain = lesson.plain(lesson.test, 16)[0]
    torch.manual_seed(0)
    network = vgg16(lesson.shape, lesson.classes, narrower=16)
    Training(lesson, BUDGET, "no shuffle", 0).prepared(network, layer)
    with torch.no_grad():
        wrong = network[0](torch.from_numpy(morph(plain, key_of(lesson.shape, 1))))
    assert (wrong - truth).abs().mean() > 0.5


def test_the_random_arm_has_the_layer_that_the_plain_arm_starts_with(lesson):
    """So they differ in nothing but what is learned there, and in the order of channels."""
    order = key_of(lesson.shape, 0).channel_order(CHANNELS).copy()
    plain, random = (first_features(lesson, arm, None) for arm in ("plain", "random"))
    assert torch.allclose(random, plain[:, order], atol=1e-4)


def test_without_the_layer_a_network_gets_the_morphed_data_itself(lesson):
    network = vgg16(lesson.shape, lesson.classes, narrower=16)
    change = Training(lesson, BUDGET, "without", 0).prepared(network, None)
    plain = lesson.plain(lesson.test, 16)[0]
    assert isinstance(network[0], nn.Conv2d)
    assert np.allclose(np.linalg.norm(change(plain)), np.linalg.norm(plain), rtol=1e-4)  # it only turns
    assert np.abs(np.corrcoef(change(plain)[0].ravel(), plain[0].ravel())[0, 1]) < 0.2


def test_what_is_frozen_stays_and_all_else_learns(lesson, layer, tmp_path):
    store = PieceStore(tmp_path)
    before = Training(lesson, BUDGET, "plain", 0)
    learned = before.piece(store)["first_layer"]["weight"]
    torch.manual_seed(0)
    network = vgg16(lesson.shape, lesson.classes, narrower=16)
    assert not np.allclose(learned, network[0].weight.detach().numpy(), atol=1e-4)
    Training(lesson, BUDGET, "frozen", 0, before).prepared(
        network, read_layer(before.piece(store), lesson.shape)
    )
    assert np.array_equal(network[0].weight.detach().numpy(), np.array(learned, np.float32))
    assert [name for name, one in network.named_parameters() if not one.requires_grad] == [
        "0.weight", "0.bias",
    ]  # fmt: skip


def test_images_are_spread_over_all_classes_however_they_are_sorted(lesson):
    _, labels = lesson.plain(lesson.train, 200)
    assert {*labels.tolist()} == {*range(lesson.classes)}


def test_rows_and_pairs_are_means_over_seeds():
    scores = {"plain": [0.80, 0.82, 0.84], "augmented": [0.79, 0.83, 0.82]}
    rows = [
        row_of("cifar10", setting, arm, [{"accuracy": one, "auc": None} for one in scores[arm]])
        for arm, setting in (("plain", None), ("augmented", "other images"))
    ]
    (pair,) = pairs_of(rows)
    differences = np.subtract(scores["plain"], scores["augmented"])
    assert pair["difference"] == pytest.approx(differences.mean(), abs=1e-6)
    assert pair["standard_error"] == pytest.approx(differences.std(ddof=1) / 3**0.5, abs=1e-6)
    assert pair["within_two_standard_errors"] is True
    assert rows[0]["accuracy"]["sd"] == pytest.approx(0.02)
    lines = table({"rows": rows, "pairs": [pair]}, ["accuracy"], table2.PUBLISHED).splitlines()
    assert lines[2] == "| CIFAR-10 | plain data | - | 82.0 % ± 2.0 | - | 87.2 % |"
    assert lines[3].startswith("| CIFAR-10 | morphed, augmented layer | other images | 81.3 % ± 2.1 | 0.7 ")


def test_far_apart_is_not_within_two_standard_errors():
    scores = (("plain", [0.80, 0.82]), ("without", [0.20, 0.21]))
    rows = [
        row_of("x", None, arm, [{"accuracy": one, "auc": None} for one in each]) for arm, each in scores
    ]
    assert pairs_of(rows)[0]["within_two_standard_errors"] is False


def test_one_set_of_images_alone_has_no_other_first_layer(images, tmp_path):
    with pytest.raises(ParameterError, match="from other images: give public ones, or a second set"):
        compare(Request("tiny", PieceStore(tmp_path / "none"), (images,)), BUDGET, table2.WAYS)
    assert not (tmp_path / "none").exists()


def test_the_duration_is_told_after_some_steps_and_after_each_training():
    told: list[str] = []
    seconds = iter(range(1000))
    duration = Duration([100, 200], 64, told.append, lambda *_: None, lambda: float(next(seconds)))
    for done in range(1, 13):
        duration.step(done, 100)
    assert told == ["about 5 minutes on this machine, for 2 trainings at 64 images a second"]
    duration.finish("first")
    assert told[1:] == ["first; about 3 minutes left"]


def test_every_set_of_the_paper_has_a_name():
    assert {data for data, _ in table2.PUBLISHED} <= set(NAMES)
