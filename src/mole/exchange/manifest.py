"""manifest.json: what a delivery holds, with a checksum of every file and of itself.

It says nothing that identifies a person or a path. It is written last: a delivery without one is
unfinished. Its own checksum, in the field `seal`, is taken with zeros in that field's place.
"""

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace

from mole._version import __version__
from mole.errors import DeliveryError, MoleError
from mole.exchange.clipping import Clipping
from mole.exchange.facts import FileFacts, SplitFacts
from mole.exchange.shards import IMAGE, Dtype, check_dtype, column_of
from mole.foreign_text import shown
from mole.limits import MAX_CLASSES, MAX_FEATURES, MAX_JSON_BYTES
from mole.protection.terms import Protection
from mole.scheme.filling import check_plain_shape
from mole.scheme.layouts import Layout
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Shape, check_shape, element_count
from mole.storage.stores import Store, digest_of, read_at_most
from mole.storage.typed_json import Fields, FormatError, parse_json

FORMAT, VERSION = "mole-delivery", 2
CLIPPED_VERSION = 3  # of a delivery in 8 bits by version 0.5 that says what they cut off
INT8_VERSION = 4  # of one whose values are called `image_int8`, and whose shards hold their scales
VIEWS_VERSION = 5  # of one with several views of each sample, or zeros that fill tiles
PROTECTED_VERSION = 6  # of a protected one with Gaussian noise, before version 0.10
LARGEST_VERSION = 7  # of one with limited noise
VERSIONS = (VERSION, CLIPPED_VERSION, INT8_VERSION, VIEWS_VERSION, PROTECTED_VERSION, LARGEST_VERSION)
NAME = "manifest.json"
BLANK = "0" * 64
_CHECKSUM = re.compile(rb'"seal": "([0-9a-f]{64})"')


@dataclass(frozen=True)
class Manifest:
    """What a delivery holds.

    Attributes:
        delivery_id: names this delivery; only the holder of the key can compute it.
        key_fingerprint, layer_fingerprint: which key morphed it, and for which first layer.
        input_shape, output_shape: of samples, and of the layer's features.
        kappa, layout: how it was morphed.
        dtype: how morphed values are stored.
        probe_error: relative error of the features, measured on the probes when it was made; None for
            further data that comes without an augmented layer.
        normalisation, mode, resize: what was done to the images before.
        classes: names of the classes, if there are any.
        columns: further columns that the provider chose to hand over.
        splits: rows and shards of each split.
        files: size and checksum of every file but the manifest.
        tool: what wrote it.
        clipped: what 8 bits cut off; None where that is nothing, or not known.
        column: what the column of morphed values is called in the shards.
        plain_shape: of samples before zeros filled their tiles; None where none were needed.
        protection: what rows tell at most; None where they are images.
    """

    delivery_id: str
    key_fingerprint: str
    layer_fingerprint: str
    input_shape: Shape
    output_shape: Shape
    kappa: int
    layout: str
    dtype: Dtype
    probe_error: float | None
    normalisation: Normalisation | None
    mode: str | None
    resize: str | None
    classes: tuple[str, ...] | None
    columns: tuple[str, ...]
    splits: dict[str, SplitFacts]
    files: dict[str, FileFacts] = field(default_factory=dict)
    tool: str = f"morphed-learning {__version__}"
    clipped: Clipping | None = None
    column: str = IMAGE
    plain_shape: Shape | None = None
    protection: Protection | None = None

    @property
    def network_shape(self) -> Shape:
        """Shape of the samples that the developer's network was built for."""
        return self.plain_shape or self.input_shape

    @property
    def version(self) -> int:
        """Of the format: the lowest that has everything it says."""
        if self.protection is not None:
            return LARGEST_VERSION if self.protection.is_limited else PROTECTED_VERSION
        if self.plain_shape is not None or any(split.views > 1 for split in self.splits.values()):
            return VIEWS_VERSION
        if self.column != IMAGE:
            return INT8_VERSION
        return VERSION if self.clipped is None else CLIPPED_VERSION

    @property
    def rows(self) -> int:
        """Rows of all splits."""
        return sum(split.rows for split in self.splits.values())

    @property
    def data_bytes(self) -> int:
        """Bytes of all shards."""
        return sum(facts.bytes for name, facts in self.files.items() if name.startswith("data/"))

    def write(self, store: Store, names: Collection[str] = ()) -> "Manifest":
        """Write it into its delivery, with checksums of the named files and of itself; what was written."""
        splits = {name: facts.fields() for name, facts in self.splits.items()}
        digests = {name: digest_of(store, name) for name in sorted(names)}
        found = {name: FileFacts(bytes=size, sha256=digest) for name, (digest, size) in digests.items()}
        whole = replace(self, files={**self.files, **found})
        head = {"format": FORMAT, "version": self.version, "seal": BLANK}
        content = {**head, **asdict(whole), "splits": splits}
        if self.clipped is None:
            del content["clipped"]
        if self.column == IMAGE:
            del content["column"]
        if self.plain_shape is None:
            del content["plain_shape"]
        if self.protection is None:
            del content["protection"]
        else:
            content["protection"] = self.protection.fields()
        text = json.dumps(content, indent=1).encode() + b"\n"
        store.write(NAME, text.replace(BLANK.encode(), hashlib.sha256(text).hexdigest().encode(), 1))
        return whole

    @classmethod
    def read(cls, store: Store) -> "Manifest":
        """Read it from a delivery; an error if it is missing, damaged, or from a newer version."""
        return cls.parse(cls.stored(store), f"{store.label}/{NAME}")

    @staticmethod
    def stored(store: Store) -> bytes:
        """The bytes of its file, unchecked; an error if it is missing."""
        if NAME not in store.names():
            raise DeliveryError(f"{store.label} has no {NAME}: it is not a delivery, or it is unfinished")
        return read_at_most(store, NAME, MAX_JSON_BYTES)

    @classmethod
    def parse(cls, text: bytes, name: str) -> "Manifest":
        """Undo `write`, from the bytes of a file of that name."""
        try:
            fields = parse_json(text)
            form, version = fields.value("format"), fields.value("version")
        except FormatError:
            raise DeliveryError(f"{name} is damaged: get the delivery again, or make it anew") from None
        if form != FORMAT:
            raise DeliveryError(f"{name} does not belong to a delivery")
        if version not in VERSIONS:
            is_newer = isinstance(version, int) and version > LARGEST_VERSION
            raise DeliveryError(
                f"{name} has version {shown(version, 9)} and this program knows {LARGEST_VERSION}: "
                + ("upgrade it" if is_newer else "ask its sender for a delivery by a newer one")
            )
        checksum = _CHECKSUM.search(text)
        blanked = text.replace(checksum[1], BLANK.encode(), 1) if checksum else b""
        if checksum is None or hashlib.sha256(blanked).hexdigest().encode() != checksum[1]:
            raise DeliveryError(
                f"{name} is damaged: its checksum does not match: get the delivery again, or make it anew"
            )
        try:
            return cls._parse(fields)
        except (FormatError, MoleError) as error:
            raise DeliveryError(
                f"{name} does not follow the format ({error}): ask its sender for another"
            ) from None

    @classmethod
    def _parse(cls, fields: Fields) -> "Manifest":
        known = {*cls.__dataclass_fields__, "format", "version", "seal"}
        if unknown := fields.names() - known:
            raise FormatError(f"it has a field '{shown(min(unknown))}', which is unknown")
        files = {name: FileFacts.parse(facts) for name, facts in fields.objects("files")}
        splits = {name: SplitFacts.parse(facts, len(files)) for name, facts in fields.objects("splits")}
        classes, dtype = fields.optional("classes", fields.texts), check_dtype(fields.text("dtype"))
        if not splits:
            raise FormatError("it has no split")
        plain_shape, protection = _plain_shape(fields), _protection(fields, splits)
        has_views = plain_shape is not None or any(split.views > 1 for split in splits.values())
        if protection is None and has_views != (fields.value("version") == VIEWS_VERSION):
            raise FormatError("its views and its 'plain_shape' do not fit its version")
        if sum(split.shards for split in splits.values()) > len(files):
            raise FormatError("it has more shards than files")
        if len(classes or ()) > MAX_CLASSES:
            raise FormatError(f"it has more than {MAX_CLASSES} classes")
        return cls(
            delivery_id=fields.text("delivery_id"),
            key_fingerprint=fields.text("key_fingerprint"),
            layer_fingerprint=fields.text("layer_fingerprint"),
            input_shape=check_shape(fields.wholes("input_shape")),
            output_shape=check_shape(fields.wholes("output_shape"), MAX_FEATURES),
            kappa=fields.whole("kappa", least=1),
            layout=fields.text("layout"),
            dtype=dtype,
            probe_error=fields.optional("probe_error", fields.number),
            normalisation=fields.optional(
                "normalisation", lambda name: _normalisation(fields.object(name))
            ),
            mode=fields.optional("mode", fields.text),
            resize=fields.optional("resize", fields.text),
            classes=classes,
            columns=fields.texts("columns"),
            splits=splits,
            files=files,
            tool=fields.text("tool"),
            clipped=Clipping.parse(fields.object("clipped")) if "clipped" in fields.names() else None,
            column=_column(fields, dtype),
            plain_shape=plain_shape,
            protection=protection,
        )


def _column(fields: Fields, dtype: Dtype) -> str:
    """What the values are called: until 8-bit ones had a name of their own, no manifest said it."""
    version = fields.value("version")
    is_said = version == INT8_VERSION or (version >= VIEWS_VERSION and dtype == "int8")
    column = fields.text("column") if is_said or "column" in fields.names() else IMAGE
    if (column != IMAGE) != is_said or (is_said and column != column_of(dtype)):
        raise FormatError("its field 'column' does not fit its version and number type")
    return column


def _protection(fields: Fields, splits: Collection[str]) -> Protection | None:
    """What protects the rows, for each of its splits."""
    version = fields.value("version")
    if ("protection" in fields.names()) != (version in (PROTECTED_VERSION, LARGEST_VERSION)):
        raise FormatError("its field 'protection' does not fit its version")
    if "protection" not in fields.names():
        return None
    protection = Protection.parse(fields.object("protection"))
    if protection.is_limited != (version == LARGEST_VERSION):
        raise FormatError("its field 'limit' does not fit its version")
    shape = "plain_shape" if "plain_shape" in fields.names() else "input_shape"
    elements = element_count(check_shape(fields.wholes(shape)))
    if set(protection.certificates) != set(splits):
        raise FormatError("its certificates are not for its splits")
    if any(one.features != elements for one in protection.certificates.values()):
        raise FormatError("its certificates are for rows of another length")
    return protection


def _plain_shape(fields: Fields) -> Shape | None:
    """The shape of samples before zeros filled their tiles, checked against the shape after."""
    if "plain_shape" not in fields.names():
        return None
    whole = check_shape(fields.wholes("input_shape"))
    layout = Layout.of(fields.text("layout"), whole, fields.whole("kappa", least=1))
    return check_plain_shape(fields.wholes("plain_shape"), layout)


def _normalisation(fields: Fields) -> Normalisation:
    return Normalisation(fields.numbers("mean"), fields.numbers("std"))
