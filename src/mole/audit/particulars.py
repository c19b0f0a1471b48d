"""What a report on a delivery has to name before it can be filed: which delivery, what left, and for whom.

All of it stands in the delivery itself. Names in it, of splits, classes and columns, are kept as they are:
whoever shows them makes them fit to be shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mole.analysis.figure import in_words
from mole.errors import MoleError
from mole.exchange.delivery import Delivery
from mole.exchange.recipients import HOLDER, recipient_count
from mole.exchange.signatures import check_delivery
from mole.quantities import counted
from mole.scheme.shapes import shape_text

BAD_SIGNATURE = "its signature does not belong to it"


@dataclass(frozen=True)
class Particulars:
    """A delivery, for the file.

    Attributes:
        name: of its folder.
        delivery_id, key_fingerprint, layer_fingerprint: as in its manifest.
        images: rows of all splits.
        shape: of an image.
        splits: rows of each.
        labelled: the splits whose rows have labels.
        classes: names of classes that left; empty where none did.
        columns: further columns that left.
        data_bytes, all_bytes: of the morphed data, and of everything.
        has_layer: whether an augmented layer is in it.
        recipients: for how many it is sealed, its provider included; 0 if it is not sealed.
        signature: who signed it, in words.
    """

    name: str
    delivery_id: str
    key_fingerprint: str
    layer_fingerprint: str
    images: int
    shape: str
    splits: Mapping[str, int]
    labelled: tuple[str, ...]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    data_bytes: int
    all_bytes: int
    has_layer: bool
    recipients: int
    signature: str

    @classmethod
    def of(cls, delivery: Delivery) -> "Particulars":
        """Those of an opened delivery."""
        manifest = delivery.manifest
        return cls(
            name=name_of(delivery.label),
            delivery_id=manifest.delivery_id,
            key_fingerprint=manifest.key_fingerprint,
            layer_fingerprint=manifest.layer_fingerprint,
            images=manifest.rows,
            shape=shape_text(manifest.network_shape),
            splits={name: facts.rows for name, facts in manifest.splits.items()},
            labelled=tuple(name for name in manifest.splits if delivery.labels(name) is not None),
            classes=manifest.classes or (),
            columns=manifest.columns,
            data_bytes=manifest.data_bytes,
            all_bytes=sum(facts.bytes for facts in manifest.files.values()),
            has_layer=delivery.has_layer,
            recipients=recipient_count(delivery),
            signature=_signature(delivery),
        )

    @property
    def size(self) -> str:
        """How large it is, in words."""
        data, whole = (in_words(size, "bytes") for size in (self.data_bytes, self.all_bytes))
        return f"{data} of morphed data, {whole} in all"

    @property
    def sealing(self) -> str:
        """Whether it is sealed, and for how many, in words."""
        if not self.recipients:
            return "not sealed: whoever gets hold of the files can read them"
        many = counted(self.recipients, "recipient")
        return f"sealed for {many}, {HOLDER} among them"


def name_of(label: str) -> str:
    """The name of a delivery's folder, without the way there and without what a URL may have to hide.

    >>> name_of("/srv/exchange/clinic-2026"), name_of("s3://me:secret@bucket/clinic/?token=x")
    ('clinic-2026', 'clinic')
    """
    path = urlsplit(label).path if "://" in label else label
    return path.rstrip("/").rpartition("/")[2] or "-"


def _signature(delivery: Delivery) -> str:
    try:
        return check_delivery(delivery)
    except MoleError:
        return BAD_SIGNATURE
