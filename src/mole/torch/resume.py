"""Resume an interrupted training: a file that keeps the state after each epoch.

It lies beside the checkpoint to come and is removed when the training is complete. The augmented layer is
not in it: that is large, frozen, and in the delivery.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mole.errors import FileError
from mole.storage.atomic import clear_stale, new_file

FORMAT = "mole-unfinished-training 1"


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

    def _content(self) -> dict[str, Any]:
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception:  # torch.load fails in many ways on a file that is not its own
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileError(
                f"{self.path} is damaged, or not a training of this version", advice={"replace": True}
            )
        different = _differences(json.loads(content["training"]), self.training)
        if different:
            what = " and a different ".join(different)
            raise FileError(
                f"{self.path} belongs to a training with a different {what}: repeat that call to resume "
                "it, or discard it",
                advice={"replace": True},
            )
        return content


def _differences(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The names of what is not the same.

    >>> _differences({"seed": 1, "epochs": 5}, {"seed": 2, "epochs": 5})
    ['seed']
    """
    return [name for name in wanted if kept.get(name) != wanted[name]]
