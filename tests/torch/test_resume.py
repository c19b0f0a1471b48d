"""An interrupted training resumes after its last finished epoch, and ends as if it had never stopped."""

import pytest
import torch

from glyphs import SHAPE, TRAINING, make_key, network
from mole import augment
from mole.errors import FileError
from mole.torch import (
    ResumeFile,
    attach,
    export_first_layer,
    train,
)
from mole.torch.networks import build_network


class StopError(Exception):
    """Somebody pulls the plug."""


def interrupted(setting, resume_file, *, after, **choices):
    """A training that stops after so many epochs."""
    model = network()
    attach(model, setting.layer)

    def stop(epoch):
        if epoch.number == after:
            raise StopError

    with pytest.raises(StopError):
        train(model, setting.train, resume_file=resume_file, on_epoch=stop, **choices)


def test_an_interrupted_training_ends_as_if_it_had_never_stopped(setting, tmp_path):
    choices = {**TRAINING, "epochs": 4, "validation": setting.test}
    resume_file = ResumeFile(tmp_path / "kept", {"seed": 7})
    whole = network()
    attach(whole, setting.layer)
    expected = train(whole, setting.train, **choices)
    interrupted(setting, resume_file, after=1, **choices)
    interrupted(setting, resume_file, after=3, **choices)
    assert len(resume_file.read()["epochs"]) == 3
    assert resume_file.path.stat().st_size < setting.layer.matrix.nbytes  # the large part is not in it
    resumed, seen = network(seed=1), []
    attach(resumed, setting.layer)
    history = train(resumed, setting.train, resume_file=resume_file, on_epoch=seen.append, **choices)
    assert history == expected
    assert [epoch.number for epoch in seen] == [4]
    weights, resumed_weights = whole.state_dict(), resumed.state_dict()
    assert all(torch.equal(weights[name], resumed_weights[name]) for name in weights)
    resume_file.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_training_is_refused(setting, tmp_path):
    path = tmp_path / "kept"
    choices = {**TRAINING, "epochs": 2}
    interrupted(setting, ResumeFile(path, {"seed": 7, "network": "a"}), after=1, **choices)
    model = network()
    attach(model, setting.layer)
    for training, message in (
        (
            {"seed": 8, "network": "a"},
            "was made with seed = 7: repeat that call to resume it, or discard it: give replace=True",
        ),
        ({"seed": 8, "network": "b"}, "was made with seed = 7 and with network = a"),
        ({"seed": 7}, "was made with network = a"),
    ):
        with pytest.raises(FileError, match=message):
            train(model, setting.train, resume_file=ResumeFile(path, training), **choices)
        assert ResumeFile(path, training, replace=True).read() is None
    other = build_network("small_resnet", SHAPE, 4)
    attach(other, augment(export_first_layer(other, SHAPE), make_key()))
    with pytest.raises(FileError, match="kept does not fit the model"):
        train(other, setting.train, resume_file=ResumeFile(path, {"seed": 7, "network": "a"}), **choices)
    content = torch.load(path, weights_only=True)
    torch.save({**content, "optimizer": {}}, path)
    with pytest.raises(FileError, match="kept does not fit this network"):
        train(model, setting.train, resume_file=ResumeFile(path, {"seed": 7, "network": "a"}), **choices)
    path.write_text("no training")
    with pytest.raises(
        FileError, match="kept is damaged, or not a training of this version: give replace=True"
    ):
        train(model, setting.train, resume_file=ResumeFile(path, {"seed": 7}), **choices)
    with pytest.raises(FileError, match="cannot be written"):
        ResumeFile(tmp_path / "nowhere" / "kept", {}).keep({})
