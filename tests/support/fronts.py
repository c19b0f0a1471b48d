"""Small fronts for tests: a product of flattened images and a weight, as ONNX."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import mole
from deliveries import SHAPE, write_npz
from mole.protection.front_file import front_metadata
from mole.scheme.normalisation import Normalisation

FEATURES = 12


def front_model(
    weight: np.ndarray, nodes=None, *, shape=SHAPE, normalisation=None, metadata: bool = True, **changes
) -> onnx.ModelProto:
    """A front that multiplies flattened images by a weight, or does something else to them."""
    nodes = nodes or [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weight"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "front",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", weight.shape[1]])],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, **changes)
    if metadata:
        helper.set_model_props(model, front_metadata(shape, normalisation))
    return model


def write_front(path: Path, seed: int = 0, features: int = FEATURES) -> Path:
    """A front for the images of `deliveries`, whose features have lengths around 1."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(np.prod(SHAPE), features)) / 30
    model = front_model(weight.astype(np.float32), normalisation=Normalisation((0.5,) * 3, (0.3,) * 3))
    onnx.save(model, path)
    return path


def write_images_and_front(folder: Path) -> Path:
    """Images, `data.npz`, and a front for them, `front.onnx`: what a protected delivery is made from."""
    write_npz(folder / "data.npz")
    write_front(folder / "front.onnx")
    return folder


def write_map_front(path: Path, maps: tuple[int, int, int]) -> Path:
    """A front for the same images that gives feature maps."""
    weight = np.random.default_rng(0).normal(size=(np.prod(SHAPE), np.prod(maps))) / 100
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weight"], ["flat"]),
        helper.make_node("Reshape", ["flat", "sides"], ["features"]),
    ]
    model = front_model(weight.astype(np.float32), nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, *maps], np.int64), "sides"))
    del model.graph.output[:]
    model.graph.output.append(
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", *maps])
    )
    onnx.save(model, path)
    return path


def write_component_front(path: Path, images: np.ndarray, features: int) -> Path:
    """A front that gives the first principal components of such images, half-whitened, of length about 1.

    Args:
        path: where it goes.
        images: 8-bit ones, (n, height, width).
        features: how many components.
    """
    rows = images.reshape(len(images), -1) / 255
    mean = rows.mean(axis=0)
    _, sizes, directions = np.linalg.svd(rows - mean, full_matrices=False)
    weight = directions[:features].T / np.sqrt(sizes[:features])
    weight /= np.median(np.linalg.norm((rows - mean) @ weight, axis=1))
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("Sub", ["rows", "mean"], ["centred"]),
        helper.make_node("MatMul", ["centred", "weight"], ["features"]),
    ]
    model = front_model(weight.astype(np.float32), nodes, shape=(1, *images.shape[1:]))
    model.graph.initializer.append(numpy_helper.from_array(mean.astype(np.float32)[None], "mean"))
    onnx.save(model, path)
    return path


def feature_layer(features: int = FEATURES, seed: int = 0) -> mole.FirstLayer:
    """The first layer of a network on such features."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(7, features)).astype(np.float32)
    return mole.FirstLayer.linear(weight, rng.normal(size=7).astype(np.float32), input_shape=(features,))


def feature_key(features: int = FEATURES, seed: int = 0, **options) -> mole.MorphKey:
    """A key for it, the same in every run."""
    return mole.MorphKey.generate((features,), insecure_seed=bytes([seed] * 32), **options)
