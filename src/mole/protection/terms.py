"""What protects a delivery: which front made its features, and the certificate of each split."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mole.errors import ParameterError
from mole.protection.certificate import Certificate
from mole.storage.typed_json import Fields, FormatError

DIGEST_DIGITS = 64  # of SHA-256, in hexadecimal
REACH = 5.0  # standard deviations of the noise


@dataclass(frozen=True)
class Protection:
    """The terms of a protected delivery, as its manifest has them.

    >>> terms = Protection("0" * 64, {"train": Certificate.for_bits(1.0, features=128)})
    >>> round(terms.most_bits, 3)
    1.0

    Attributes:
        front: SHA-256 of the front's file.
        certificates: the bound of one row, for each split.
    """

    front: str
    certificates: Mapping[str, Certificate]

    def __post_init__(self) -> None:
        if not self.certificates:
            raise ParameterError("a protected delivery has a certificate for each of its splits")

    @property
    def most_bits(self) -> float:
        """The bits of the split whose rows tell most."""
        return max(certificate.bits for certificate in self.certificates.values())

    @property
    def is_limited(self) -> bool:
        """Whether the rows of any split have limited noise."""
        return any(one.limit is not None for one in self.certificates.values())

    @property
    def reach(self) -> float:
        """How far from zero a number of a row lies, as good as always: it says nothing about the images."""
        return max(one.clip + REACH * one.sigma for one in self.certificates.values())

    def fields(self) -> dict[str, Any]:
        """As they stand in a manifest: what the bounds follow from, and not the bounds themselves."""
        rows = {split: asdict(one) for split, one in self.certificates.items()}
        for facts in rows.values():
            if facts["limit"] is None:
                del facts["limit"]
        return {"front": self.front, "rows": rows}

    @classmethod
    def parse(cls, fields: Fields) -> "Protection":
        """Undo `fields`."""
        front = fields.text("front")
        if len(front) != DIGEST_DIGITS or not set(front) <= set("0123456789abcdef"):
            raise FormatError("its field 'front' is not a digest")
        certificates = {
            split: Certificate(
                facts.whole("features", least=1),
                facts.number("clip"),
                facts.number("sigma"),
                facts.number("limit") if "limit" in facts.names() else None,
            )
            for split, facts in fields.objects("rows")
        }
        return cls(front, certificates)
