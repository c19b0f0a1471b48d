"""A front is a hostile file: what it may hold, what it may do, and what it gives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import fronts
from mole.errors import FileError, ShapeError
from mole.protection import front_runner
from mole.protection.front_file import read_front
from mole.protection.front_runner import FrontRunner
from mole.scheme.normalisation import Normalisation

SHAPE, FEATURES = (1, 6, 6), 5


def front_model(weight: np.ndarray, nodes=None, **changes) -> onnx.ModelProto:
    return fronts.front_model(
        weight, nodes, shape=SHAPE, normalisation=Normalisation((0.5,), (0.25,)), **changes
    )


@pytest.fixture
def weight(rng) -> np.ndarray:
    return rng.normal(size=(36, FEATURES)).astype(np.float32)


@pytest.fixture
def path(tmp_path, weight):
    onnx.save(front_model(weight), tmp_path / "front.onnx")
    return tmp_path / "front.onnx"


def test_a_front_says_what_it_takes_and_gives_it(path, weight, rng):
    front = read_front(path)
    assert (front.input_shape, front.features, front.dimensions) == (SHAPE, (FEATURES,), FEATURES)
    assert front.normalisation == Normalisation((0.5,), (0.25,))
    images = rng.normal(size=(7, *SHAPE)).astype(np.float32)
    with FrontRunner(front, threads=1) as run:
        assert np.allclose(run(images), images.reshape(7, -1) @ weight, atol=1e-5)
        assert run(images[:0]).shape == (0, FEATURES)
        with pytest.raises(ShapeError, match="do not fit a front of 1x6x6"):
            run(images[:, :, 1:])


def test_no_row_depends_on_any_other_image(tmp_path, weight, rng):
    """A front that gives the first image of a batch to all rows; run alone, an image is the first."""
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weight"], ["made"]),
        helper.make_node("Gather", ["made", "first"], ["of_the_first"], axis=0),
        helper.make_node("Mul", ["made", "nothing"], ["zeros"]),
        helper.make_node("Add", ["zeros", "of_the_first"], ["features"]),
    ]
    model = front_model(weight, nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), "first"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.float32), "nothing"))
    onnx.save(model, tmp_path / "front.onnx")
    images = rng.normal(size=(7, *SHAPE)).astype(np.float32)
    with FrontRunner(read_front(tmp_path / "front.onnx"), threads=1) as run:
        assert np.allclose(run(images), images.reshape(7, -1) @ weight, atol=1e-5)


def test_rows_cannot_be_handed_to_another_image(tmp_path, weight):
    """Two rows for one image and none for the next are as many as were asked for, and are refused."""
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weight"], ["made"]),
        helper.make_node("Concat", ["made", "made"], ["twice"], axis=0),
        helper.make_node("ReduceMax", ["rows"], ["largest"], keepdims=0),
        helper.make_node("Greater", ["largest", "nothing"], ["is_first"]),
        helper.make_node("Expand", ["is_first", "two"], ["chosen"]),
        helper.make_node("Compress", ["twice", "chosen"], ["features"], axis=0),
    ]
    model = front_model(weight, nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.float32), "nothing"))
    model.graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "two"))
    onnx.save(model, tmp_path / "front.onnx")
    images = np.stack([np.ones(SHAPE), -np.ones(SHAPE)]).astype(np.float32)
    with (
        FrontRunner(read_front(tmp_path / "front.onnx"), threads=1) as run,
        pytest.raises(FileError, match="could not be run"),
    ):
        run(images)


def with_function(weight) -> onnx.ModelProto:
    function = helper.make_function(
        "own", "Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    return front_model(weight, functions=[function])


def with_operator(weight, name: str, domain: str = "") -> onnx.ModelProto:
    last = helper.make_node(name, ["rows"], ["features"], domain=domain)
    return front_model(weight, [helper.make_node("Flatten", ["images"], ["rows"]), last])


def with_outside_weights(weight) -> onnx.ModelProto:
    model = front_model(weight)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return model


def with_sparse_weights(weight) -> onnx.ModelProto:
    model = front_model(weight)
    constant = model.graph.node.add(op_type="Constant", output=["unused"]).attribute.add(
        name="sparse_value"
    )
    constant.type = onnx.AttributeProto.SPARSE_TENSOR
    constant.sparse_tensor.values.data_location = TensorProto.EXTERNAL
    constant.sparse_tensor.values.external_data.add(key="location", value="/etc/passwd")
    return model


def with_dropout(weight) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("Dropout", ["rows", "", "is_training"], ["features"]),
    ]
    return front_model(weight, nodes)


def with_many_nodes(weight) -> onnx.ModelProto:
    """Two bytes for each: a file of a gigabyte could hold half a billion."""
    model = front_model(weight)
    model.graph.MergeFromString(b"\x0a\x00" * 100_001)
    return model


HOSTILE = {
    "many operators": (with_many_nodes, "more than 100,000 operators"),
    "functions": (with_function, "functions of its own"),
    "foreign operator": (lambda w: with_operator(w, "Shell", "com.evil"), "Shell is not one of ONNX's own"),
    "loop": (lambda w: with_operator(w, "Loop"), "Loop could run for ever"),
    "outside weights": (with_outside_weights, "lie in other files"),
    "sparse weights": (with_sparse_weights, "sparse weights"),
    "random operator": (lambda w: with_operator(w, "RandomNormalLike"), "RandomNormalLike is a random one"),
    "dropout at work": (with_dropout, "Dropout is a random one"),
    "no metadata": (lambda w: front_model(w, metadata=False), "does not say what it takes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_front_may_not_hold_is_refused(tmp_path, weight, name):
    make, words = HOSTILE[name]
    (tmp_path / "front.onnx").write_bytes(make(weight).SerializeToString())
    with pytest.raises(FileError, match=words):
        read_front(tmp_path / "front.onnx")


def test_a_file_in_two_forms_is_refused(tmp_path, weight):
    """ONNX for whoever checks it, and for onnxruntime a file of its own form, with other operators."""
    unknown_fields = b"\x78\x01\x7a\x04ORTM"
    content = unknown_fields + front_model(weight).SerializeToString()
    assert onnx.load_model_from_string(content).graph.node  # the first reader sees nothing wrong
    (tmp_path / "front.onnx").write_bytes(content)
    with pytest.raises(FileError, match="onnxruntime's own"):
        read_front(tmp_path / "front.onnx")


def test_what_is_no_onnx_file_is_refused(tmp_path):
    for content in (b"no front", b"\xff" * 100):
        (tmp_path / "front.onnx").write_bytes(content)
        with pytest.raises(FileError, match=r"front\.onnx"):
            read_front(tmp_path / "front.onnx")
    with pytest.raises(FileError, match="cannot be read"):
        read_front(tmp_path / "nowhere.onnx")


def test_only_the_file_that_was_checked_is_run(tmp_path, weight):
    """Its file is changed after it was read: what runs is another one."""
    path = tmp_path / "front.onnx"
    onnx.save(front_model(weight), path)
    front = read_front(path)
    images = np.zeros((2, *SHAPE), np.float32)
    onnx.save(front_model(2 * weight), path)
    with FrontRunner(front) as run, pytest.raises(FileError, match="could not be run"):
        run(images)


def test_a_front_that_gives_something_else_than_it_says_is_refused(tmp_path, weight):
    model = front_model(weight)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = FEATURES + 1
    onnx.save(model, tmp_path / "front.onnx")
    with (
        FrontRunner(read_front(tmp_path / "front.onnx")) as run,
        pytest.raises(FileError, match=r"could not be run|does not give the features that it says"),
    ):
        run(np.zeros((2, *SHAPE), np.float32))


def test_its_process_gets_no_passwords_and_no_modules_of_the_folder_where_it_is_started(
    path, tmp_path, monkeypatch
):
    monkeypatch.setenv("MOLE_TEST_PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "onnxruntime.py").write_text("raise SystemExit")
    with FrontRunner(read_front(path), threads=1) as run:
        assert run(np.zeros((2, *SHAPE), np.float32)).shape == (2, FEATURES)
        assert b"secret" not in Path(f"/proc/{run._process.pid}/environ").read_bytes()


def test_a_batch_is_bounded_by_what_a_front_gives_as_well(path, monkeypatch):
    monkeypatch.setattr(front_runner, "NUMBERS_AT_ONCE", 40)
    front = replace(read_front(path), input_shape=(1, 2, 2), features=(20,))  # few numbers in, many out
    sizes = []
    monkeypatch.setattr(
        FrontRunner, "_batch", lambda self, part: sizes.append(len(part)) or np.zeros((len(part), 20))
    )
    with FrontRunner(front) as run:
        run(np.zeros((5, 1, 2, 2), np.float32))
    assert sizes == [2, 2, 1]


def test_a_front_that_takes_too_long_is_stopped(path):
    with (
        FrontRunner(read_front(path), seconds=0.01) as run,
        pytest.raises(FileError, match="took longer than 0 s"),
    ):
        run(np.zeros((2, *SHAPE), np.float32))


def test_a_front_that_wants_too_much_memory_harms_nobody(tmp_path, weight):
    size = numpy_helper.from_array(np.array([1 << 20, 1 << 14], np.int64), "size")
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("ConstantOfShape", ["size"], ["huge"]),
        helper.make_node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        helper.make_node("MatMul", ["rows", "weight"], ["made"]),
        helper.make_node("Add", ["made", "sum"], ["features"]),
    ]
    model = front_model(weight, nodes)
    model.graph.initializer.append(size)
    onnx.save(model, tmp_path / "front.onnx")
    with (
        FrontRunner(read_front(tmp_path / "front.onnx")) as run,
        pytest.raises(FileError, match="could not be run"),
    ):
        run(np.zeros((2, *SHAPE), np.float32))
