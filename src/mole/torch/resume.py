"""A training that was interrupted goes on where it stood: the file in which each finished epoch is kept.

It lies beside the checkpoint to come, is written beside and renamed, and goes away when the training ends.
The augmented layer is not in it: it is large, frozen, and in the delivery.
"""

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mole.errors import FileError
from mole.storage.atomic import TEMPORARY, new_file

FORMAT = "mole-unfinished-training 1"


@dataclass(frozen=True)
class ResumeFile:
    """Where finished epochs are kept, and of which training.

    Attributes:
        path: the file; it need not exist.
        training: what is trained and how, as plain values by name; a file of another one is refused.
        replace: begin anew where the file is of another training, instead of refusing it.
    """

    path: Path
    training: Mapping[str, Any]
    replace: bool = False

    def keep(self, state: Mapping[str, Any]) -> None:
        """Write the state after an epoch, in the place of the one before."""
        content = {"format": FORMAT, "training": json.dumps(dict(self.training)), **state}
        try:
            with new_file(self.path) as temporary:
                torch.save(content, temporary)
        except (OSError, RuntimeError) as error:  # the latter is what torch.save says of a full disk
            reason = getattr(error, "strerror", None) or "the disk may be full"
            raise FileError(f"{self.path} cannot be written: {reason}") from None

    def read(self) -> dict[str, Any] | None:
        """The state after the last finished epoch, or None to begin with the first.

        Raises:
            FileError: if the file is of another training, or cannot be read.
        """
        if not self.path.exists():
            return None
        try:
            content = self._content()
            others = _differences(json.loads(content["training"]), dict(self.training))
        except FileError:
            if self.replace:
                return None
            raise
        if not others:
            return content
        if self.replace:
            return None
        raise FileError(
            f"{self.path} holds a training with another {' and another '.join(others)}: repeat that call, "
            "or begin anew with --force"
        )

    def epochs(self) -> int:
        """How many epochs are finished."""
        return len((self.read() or {}).get("epochs", ()))

    def remove(self) -> None:
        """Take the file away, if it is there, and what a killed process left beside it."""
        self.path.unlink(missing_ok=True)
        for stale in self.path.parent.glob(f".{glob.escape(self.path.name)}.*{TEMPORARY}"):
            stale.unlink(missing_ok=True)

    def _content(self) -> dict[str, Any]:
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception:  # torch.load fails in many ways on a file that is not its own
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileError(
                f"{self.path} is damaged, or no training of this version: begin anew with --force"
            )
        return content


def _differences(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Names of what is not the same.

    >>> _differences({"seed": 1, "epochs": 5}, {"seed": 2, "epochs": 5})
    ['seed']
    """
    return [name for name in wanted if kept.get(name) != wanted[name]]
