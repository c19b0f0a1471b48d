"""What `mole.torch` exports: every type that its functions take or return, each loaded when it is used."""

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator

import pytest

import mole.torch
from mole.torch.module import AugmentedModule

OF_MOLE = {"AugmentedLayer", "Delivery", "FirstLayer", "Normalisation"}  # which `mole` itself exports


def functions() -> Iterator[tuple[str, typing.Any]]:
    """Every exported function, and the public methods of exported classes."""
    for name in mole.torch.__all__:
        value = getattr(mole.torch, name)
        if not inspect.isclass(value):
            yield name, value
            continue
        for method, member in vars(value).items():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function) and (method == "__init__" or not method.startswith("_")):
                yield f"{name}.{method}", function


def types_in(annotation: typing.Any) -> Iterator[type]:
    """The classes that an annotation names, inside of unions, tuples and callables as well."""
    if isinstance(annotation, list):
        for part in annotation:
            yield from types_in(part)
    elif typing.get_origin(annotation) is not None or typing.get_args(annotation):
        for part in typing.get_args(annotation):
            yield from types_in(part)
    elif inspect.isclass(annotation):
        yield annotation


def unnamed(functions: typing.Iterable[tuple[str, typing.Any]]) -> list[str]:
    """Our own types in signatures that nobody could import from a public place."""
    public = {*mole.torch.__all__, *OF_MOLE}
    return [
        f"{name}: {found.__name__}"
        for name, function in functions
        for annotation in typing.get_type_hints(function).values()
        for found in types_in(annotation)
        if found.__module__.startswith("mole.") and found.__name__ not in public
    ]


def test_every_type_in_a_signature_is_exported():
    walked = dict(functions())
    assert {"train", "train_on", "predict_on", "MorphedDataset.sampler", "ResumeFile.keep"} <= set(walked)
    assert unnamed(walked.items()) == []


def test_that_the_test_above_can_fail():
    from mole.torch.module import augmented_part
    from mole.torch.trainer import Trainer

    walked = [("augmented_part", augmented_part), ("Trainer", Trainer.__init__)]
    assert unnamed(walked) == ["augmented_part: AugmentedPart", "Trainer: LearningRule"]


def test_every_type_in_a_field_is_exported():
    for name in ("Checkpoint", "Epoch", "Evaluation", "FoundLayer", "CheckpointFacts", "ResumeFile"):
        hints = typing.get_type_hints(getattr(mole.torch, name))
        ours = [t for hint in hints.values() for t in types_in(hint) if t.__module__.startswith("mole.")]
        assert {found.__name__ for found in ours} <= set(mole.torch.__all__), name


def test_names_are_sorted_and_loaded_from_their_homes():
    assert sorted(mole.torch.__all__) == mole.torch.__all__ == dir(mole.torch)
    assert callable(mole.torch.attach)  # and not the file of that name
    assert mole.torch.AugmentedModule is AugmentedModule
    with pytest.raises(AttributeError, match=r"'mole\.torch' has no attribute 'fit'"):
        _ = mole.torch.fit


@pytest.mark.parametrize(("name", "loads"), [("attach", False), ("MorphedDataset", True)])
def test_attaching_a_layer_needs_no_pyarrow(name, loads):
    program = f"import sys, mole.torch; mole.torch.{name}; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(loads)
