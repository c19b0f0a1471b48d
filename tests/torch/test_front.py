"""Fronts from networks: what the provider runs is what PyTorch computes."""

import numpy as np
import pytest
import torch
from torch import nn

from mole.errors import ParameterError, ShapeError
from mole.protection.front_runner import FrontRunner
from mole.scheme.normalisation import Normalisation
from mole.torch.front import Projection, make_front, pooled, pooled_features, save_front, without_last
from networks import resnet, vit

SHAPE = (3, 32, 32)


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 24, 3, stride=2), nn.ReLU(), nn.Conv2d(24, 16, 3, stride=2)).eval()


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, *SHAPE)).astype(np.float32)


BACKBONES = {"small": small, "resnet": lambda: resnet().resnet, "vit": lambda: vit().vit}


@pytest.mark.parametrize("name", BACKBONES)
def test_what_the_provider_runs_is_what_torch_computes(tmp_path, images, name):
    backbone, normalisation = BACKBONES[name]().eval(), Normalisation.of_channels(0.5, 0.25, 3)
    front = make_front(backbone, images, tmp_path / "front.onnx", dimensions=8, normalisation=normalisation)
    assert (front.input_shape, front.features, front.normalisation) == (SHAPE, (8,), normalisation)
    features = pooled_features(backbone, images)
    projection = Projection.fit(features, 8)
    expected = (features - projection.mean) @ projection.matrix
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    with FrontRunner(front, threads=1) as run:
        found = run(images)  # more than were exported with: any batch is taken
    assert np.allclose(found, expected, atol=1e-4)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_classifier_without_its_last_layer_gives_what_went_into_it(images):
    torch.manual_seed(0)
    last = nn.Linear(16, 3)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3072, 16), nn.ReLU(), nn.ModuleDict({"fc": last})["fc"])
    before = network[:3](torch.from_numpy(images))
    assert torch.equal(without_last(network, SHAPE)(torch.from_numpy(images)), before)
    hugging = without_last(resnet(), SHAPE)
    with torch.no_grad():
        assert pooled(hugging(torch.from_numpy(images))).shape[1] > 10
    with pytest.raises(ParameterError, match="does not end with a Linear layer"):
        without_last(nn.Sequential(nn.Flatten(), nn.Linear(3072, 4), nn.Softmax(1)), SHAPE)
    with pytest.raises(ParameterError, match="does not run on images of 3x32x32"):
        without_last(nn.Linear(5, 4), SHAPE)


def test_maps_are_a_front_too(tmp_path, images):
    """The paper's feature transmission: the first layers, and nothing pooled."""
    first = small()[0]
    front = save_front(first, SHAPE, tmp_path / "front.onnx")
    assert front.features == (24, 15, 15)
    with FrontRunner(front, threads=1) as run, torch.no_grad():
        expected = first(torch.from_numpy(images[:3])).flatten(1)
        assert np.allclose(run(images[:3]), expected, atol=1e-5)


def test_components_are_half_whitened(rng):
    features = rng.normal(size=(5000, 6)) * np.array([4.0, 2.0, 1.0, 0.5, 0.1, 0.01])
    projection = Projection.fit(features.astype(np.float32), 3)
    spread = ((features - projection.mean) @ projection.matrix).std(axis=0)
    assert np.allclose(spread, np.sqrt([4.0, 2.0, 1.0]), rtol=0.05)


def test_images_of_one_class_become_alike_where_classes_are_known(rng):
    """One direction tells classes apart, of ten; the others vary more, and say nothing."""

    def drawn(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(3000) % len(means)
        spread = np.array([0.3, *np.linspace(4, 2, 9)])
        return rng.normal(size=(3000, 10)) * spread + np.outer(means[labels], np.eye(10)[0]), labels

    public, classes = drawn(np.array([-4.0, -2.0, 2.0, 4.0]))
    others, truth = drawn(np.array([-3.0, 0.0, 3.0]))  # classes that the front has not seen
    turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]

    def right(labels: np.ndarray | None) -> float:
        """How often the nearest class mean is the right one."""
        projection = Projection.fit(public @ turn, 3, labels)
        rows = (others @ turn - projection.mean) @ projection.matrix
        means = np.stack([rows[truth == one].mean(axis=0) for one in range(3)])
        nearest = np.square(rows[:, None] - means).sum(axis=2).argmin(axis=1)
        return float((nearest == truth).mean())

    assert right(classes) > 0.7
    assert right(None) < 0.45  # a third is chance
    assert right(rng.permutation(classes)) < 0.45
    some = np.where(np.arange(3000) < 2500, classes, -1)  # of no class
    assert right(some) > 0.7


def test_an_image_and_its_mirror_image_have_the_same_features(tmp_path, images):
    labels = np.arange(len(images)) % 3
    fronts = [
        make_front(
            small(), images, tmp_path / f"{mirrored}.onnx", dimensions=8, labels=labels, mirrored=mirrored
        )
        for mirrored in (True, False)
    ]
    gaps = []
    for front in fronts:
        with FrontRunner(front, threads=1) as run:
            gaps.append(np.abs(run(images) - run(np.ascontiguousarray(images[..., ::-1]))).max())
    assert gaps[0] < 1e-5
    assert gaps[1] > 1e-2


def test_labels_that_tell_nothing_of_classes_are_refused(tmp_path, rng, images):
    features = rng.normal(size=(20, 6))
    for labels in (np.zeros(20, int), np.arange(20), np.full(20, -1)):
        with pytest.raises(ParameterError, match="do not tell how images of one class differ"):
            Projection.fit(features, 3, labels)
    with pytest.raises(ShapeError, match="do not go together"):
        Projection.fit(features, 3, np.zeros(19, int))
    with pytest.raises(ShapeError, match="do not go together"):
        make_front(small(), images, tmp_path / "front.onnx", dimensions=8, labels=np.zeros(3, int))
    assert not any(tmp_path.iterdir())


def test_too_few_public_images_are_refused(rng):
    with pytest.raises(ParameterError, match="8 features cannot be made from 16 of 8 public images"):
        Projection.fit(rng.normal(size=(8, 16)), 8)


def test_what_gives_no_features_is_refused():
    with pytest.raises(ParameterError, match="gives no features"):
        pooled({"no": "tensor"})
