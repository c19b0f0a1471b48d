"""Resume an interrupted training from a file with the state after each epoch, or add to a finished one.

The file lies beside the checkpoint to come and is removed when the training is complete. The augmented
layer is not in it: that is large, frozen, and in the delivery. A checkpoint says how it was trained.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mole.errors import FileError
from mole.exchange.checkpoint_files import is_checkpoint, read_facts
from mole.foreign_text import shown
from mole.storage.atomic import clear_stale, new_file

FORMAT = "mole-unfinished-training 1"
FINISHED = "finished"  # epochs that the network had behind it when the training began
NAMES = {FINISHED: "epochs before"}  # what a person would call it, where that is not the parameter


@dataclass(frozen=True)
class ResumeFile:
    """Where the state after each epoch is kept, and of which training.

        resume_file = ResumeFile(Path("model.unfinished"), {"seed": 0, "network": "small_vgg"})
        train(model, dataset, epochs=10, resume_file=resume_file)
        resume_file.remove()

    Attributes:
        path: the file; it need not exist.
        training: what is trained and how, as plain values by name; a file of another training is refused.
        replace: start over if the file cannot be used or belongs to another training, instead of refusing.
    """

    path: Path
    training: Mapping[str, Any]
    replace: bool = False

    def keep(self, state: Mapping[str, Any]) -> None:
        """Write the state after an epoch, in place of the one before."""
        content = {"format": FORMAT, "training": json.dumps(dict(self.training)), **state}
        try:
            with new_file(self.path) as temporary:
                torch.save(content, temporary)
        except (OSError, RuntimeError) as error:  # the latter is what torch.save says of a full disk
            reason = getattr(error, "strerror", None) or "the disk may be full"
            raise FileError(f"{self.path} cannot be written: {reason}") from None

    def read(self) -> dict[str, Any] | None:
        """The state after the last finished epoch; None if training starts with the first.

        Raises:
            FileError: if the file belongs to another training, or cannot be read.
        """
        if not self.path.exists():
            return None
        try:
            return self._content()
        except FileError:
            if self.replace:
                return None
            raise

    def remove(self) -> None:
        """Delete the file, if it is there, and whatever a killed process left beside it."""
        self.path.unlink(missing_ok=True)
        clear_stale(self.path)

    def _content(self) -> dict[str, Any] | None:
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception:  # torch.load fails in many ways on a file that is not its own
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileError(
                f"{self.path} is damaged, or not a training of this version", advice={"replace": True}
            )
        kept = json.loads(content["training"])
        if self._is_over(kept):
            return None
        different = differences(kept, self.training)
        if different:
            raise FileError(
                f"{self.path} was made {different}: repeat that call to resume it, or discard it",
                advice={"replace": True},
            )
        return content

    def _is_over(self, kept: Mapping[str, Any]) -> bool:
        """Whether the checkpoint has all of it: a process was killed before it could remove this file."""
        later = {name: self.training[name] for name in ("epochs", FINISHED) if name in self.training}
        finished = self.training.get(FINISHED, 0)
        return kept.get("epochs", 0) <= finished > 0 and not differences({**kept, **later}, self.training)


def differences(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """How another training was made, as far as it is not what is wanted now; '' if it is.

    >>> differences({"seed": 1, "epochs": 5, "weights": "a5"}, {"seed": 2, "epochs": 5, "weights": "3f"})
    'with seed = 1 and from other weights'
    """
    names = [name for name in {**wanted, **kept} if kept.get(name) != wanted.get(name)]
    return " and ".join(_in_words(name, kept.get(name)) for name in names)


def _in_words(name: str, kept: Any) -> str:
    """One choice of a training; digests of files say nothing to a person."""
    if kept is None:
        return f"without {NAMES.get(name, name)}"
    said = {"delivery": "on another delivery", "weights": "from other weights"}
    return said.get(name, f"with {NAMES.get(name, name)} = {shown(kept)}")


def finished_epochs(checkpoint: Path, training: Mapping[str, Any]) -> int:
    """How many epochs a finished training has, if more are asked for and nothing else; 0 if it is none.

    Raises:
        FileError: if the training was another one, or is complete.
    """
    if not is_checkpoint(checkpoint):
        return 0
    kept = read_facts(checkpoint).training
    if kept is None:
        return 0
    finished, wanted = int(kept["epochs"]), training["epochs"]
    different = differences({**kept, "epochs": wanted}, training)
    if different or finished >= wanted:
        epochs = "1 epoch" if finished == 1 else f"{finished} epochs"
        why = f"and was made {different}: choose" if different else f"with {epochs}: ask for more, choose"
        raise FileError(
            f"{checkpoint} exists already, {why} another name, or replace it", advice={"replace": True}
        )
    return finished
