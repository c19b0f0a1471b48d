"""Errors cross the line between processes, with everything that they carry."""

import copy
import pickle

import pytest

from mole.errors import (
    DeliveryError,
    MissingExtraError,
    MoleError,
    ParameterError,
    ProblemsError,
    SourceError,
    UnsupportedLayerError,
)
from mole.serving.checked_requests import RefusedError
from mole.sources.source import BadSampleError

ADVICE = {"resize": ("crop", "stretch"), "mode": "L", "replace": True, "key": None}
ERRORS = [
    MoleError(),
    ParameterError("it is 28x28", advice=ADVICE),
    DeliveryError("there is none"),
    UnsupportedLayerError("the first layer", ["it is not linear", "it has no weights"]),
    MissingExtraError("mole.torch needs PyTorch", "torch"),
    MissingExtraError("it needs something"),
    RefusedError("invalid", "it is too long"),
    BadSampleError("a.png", "it is empty", advice=ADVICE),
    ProblemsError("2 things are wrong", [SourceError("a", advice=ADVICE), BadSampleError("b", "c")]),
]


def said(error):
    """All that an error carries, and that of the errors in it."""
    facts = {name: value for name, value in vars(error).items() if name != "problems"}
    return type(error), str(error), error.args, facts, [said(one) for one in getattr(error, "problems", ())]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "sent", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]
)
def test_an_error_arrives_as_it_was(error, sent):
    assert said(sent(error)) == said(error)


def test_every_kind_of_error_is_tried_or_takes_what_the_root_takes():
    tried = {type(error) for error in ERRORS}
    kinds = [MoleError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    own = {kind for kind in kinds if "__init__" in vars(kind) and kind.__module__.startswith("mole.")}
    assert own <= tried
