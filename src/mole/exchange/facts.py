"""What a manifest says of each file and of each split."""

import re
from dataclasses import dataclass
from typing import Any

from mole.limits import MAX_SAMPLES, MAX_VIEWS
from mole.storage.typed_json import Fields, FormatError

_DIGEST = re.compile("[0-9a-f]{64}")
_NUMBERS = re.compile("(u?int|float)[0-9]{1,3}")


@dataclass(frozen=True)
class FileFacts:
    """Size and SHA-256 of a delivered file."""

    bytes: int
    sha256: str

    @classmethod
    def parse(cls, fields: Fields) -> "FileFacts":
        """From the fields of a manifest."""
        if not _DIGEST.fullmatch(digest := fields.text("sha256")):
            raise FormatError("its field 'sha256' is not a digest")
        return cls(bytes=fields.whole("bytes"), sha256=digest)


@dataclass(frozen=True)
class SplitFacts:
    """A split of a delivery.

    Attributes:
        samples: how many the source has.
        rows: how many rows were made of them.
        shards: how many files they are in.
        source_dtype: the number type that they had in the source; 'float32' where they had several.
        views: how many rows each sample has: itself, and shifted and mirrored copies of it.
    """

    samples: int
    rows: int
    shards: int
    source_dtype: str
    views: int = 1

    @property
    def most_rows(self) -> int:
        """How many rows there would be if every sample was delivered."""
        return self.samples * self.views

    def fields(self) -> dict[str, Any]:
        """As they stand in the manifest, where the number type is called `numbers`."""
        return {
            "samples": self.samples,
            "rows": self.rows,
            "shards": self.shards,
            "numbers": self.source_dtype,
            **({"views": self.views} if self.views > 1 else {}),
        }

    @classmethod
    def parse(cls, fields: Fields, files: int) -> "SplitFacts":
        """Undo `fields`; there cannot be more shards than files."""
        if not _NUMBERS.fullmatch(numbers := fields.text("numbers")):
            raise FormatError("its field 'numbers' is not a number type")
        shards = fields.whole("shards", most=files)
        views = fields.whole("views", least=2, most=MAX_VIEWS) if "views" in fields.names() else 1
        samples = fields.whole("samples", most=MAX_SAMPLES // views)
        return cls(samples, fields.whole("rows", most=samples * views), shards, numbers, views)
