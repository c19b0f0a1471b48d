"""The header of a checkpoint, which is written and read without PyTorch."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mole.errors import FileError
from mole.exchange.checkpoint_files import (
    CheckpointFacts,
    checkpoint_metadata,
    is_checkpoint,
    read_checkpoint,
    read_facts,
)
from mole.storage.checked import save_checked

FACTS = CheckpointFacts("small_resnet", (3, 8, 8), 2, ("cat", "dog"), "0" * 32)
STATE = {"0.weight": np.ones((2, 3), np.float32)}
AUGMENTED = {"name": "0", "output_shape": [4, 8, 8], "kappa": 1, "layout": "rows"}


@pytest.mark.parametrize("facts", [FACTS, CheckpointFacts("mine", (1, 4, 4), 10)])
@pytest.mark.parametrize("augmented", [AUGMENTED, None])
def test_what_is_written_is_read(tmp_path, facts, augmented):
    save_checked(tmp_path / "c", STATE, checkpoint_metadata(facts, augmented))
    assert is_checkpoint(tmp_path / "c")
    state, found, description = read_checkpoint(tmp_path / "c")
    assert (found, description) == (facts, augmented)
    assert np.array_equal(state["0.weight"], STATE["0.weight"])


@pytest.mark.parametrize("missing", [*checkpoint_metadata(FACTS, AUGMENTED)])
def test_every_field_is_needed(tmp_path, missing):
    metadata = {
        name: text for name, text in checkpoint_metadata(FACTS, AUGMENTED).items() if name != missing
    }
    save_checked(tmp_path / "c", STATE, metadata)
    with pytest.raises(FileError, match=r"is not a checkpoint|another version|does not follow the format"):
        read_checkpoint(tmp_path / "c")


TRAINED = {"epochs": 5, "seed": (1 << 63) - 1, "learning_rate": 0.001, "weights": None, "network": "mine"}


def test_how_a_network_was_trained_is_read_from_the_header_alone(tmp_path):
    facts = replace(FACTS, training=TRAINED)
    save_checked(tmp_path / "c", STATE, checkpoint_metadata(facts, AUGMENTED))
    assert read_facts(tmp_path / "c") == read_checkpoint(tmp_path / "c").facts == facts
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content[:-4] + b"oops")
    assert read_facts(tmp_path / "c") == facts
    with pytest.raises(FileError, match="is damaged"):
        read_checkpoint(tmp_path / "c")
    save_checked(tmp_path / "old", STATE, checkpoint_metadata(FACTS, AUGMENTED))  # says nothing of it
    assert read_facts(tmp_path / "old").training is None


@pytest.mark.parametrize(
    "training",
    [[], {}, {"epochs": 0}, {"epochs": "5"}, {**TRAINED, "seed": [1]}, {**TRAINED, "x": {"y": 1}}],
)
def test_a_training_of_other_types_is_refused(tmp_path, training):
    metadata = checkpoint_metadata(FACTS, AUGMENTED) | {"training": json.dumps(training)}
    save_checked(tmp_path / "c", STATE, metadata)
    for read in (read_facts, read_checkpoint):
        with pytest.raises(FileError, match="its header does not follow the format"):
            read(tmp_path / "c")
