"""README.md of a delivery: what it holds, how each reader gets the right numbers, and its columns.

Hugging Face's `datasets` takes splits and columns from its head, and so labels have the names of classes.
"""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from mole.exchange.facts import SplitFacts
from mole.exchange.manifest import Manifest
from mole.exchange.protection_words import protection_in_words
from mole.exchange.shards import LABEL, ROW_ID
from mole.scheme.layouts import ShuffledTilesLayout
from mole.scheme.shapes import element_count, shape_text

NAME = "README.md"
MOST_CLASSES = 10_000  # that the head lists; beyond, labels are plain numbers there
SIMPLE = {
    **{str(kind): str(kind) for kind in (pa.string(), pa.large_string(), pa.bool_())},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}
"""Types of single values: Arrow's names, and what `datasets` calls them."""

FLOATS = """Other readers of Parquet find each image as one list of numbers in the column `{column}`, and
`.reshape({sides})` gives it its shape, as `mole.decode` does. Read the folder `data`, or files in it:
beside them lies more than Parquet."""
INT8 = """Other readers of Parquet find each image as one list of numbers in the column `{column}`.
**These numbers are not yet the data**: each element has a scale of its own, and `mole.decode` multiplies by
it. (The scales lie in `scales.safetensors`.) Read the folder `data`, or files in it: beside them lies more
than Parquet."""

SHUFFLED = """
Tiles of these images stand in a secret order, the same in all of them: features come in that order, so a
network has to learn where each belongs. Train its position embeddings from scratch.
"""

OBFUSCATION = """\
This is obfuscation, not encryption: whoever holds the augmented layer can get the images back. Treat these
files as you would treat the images."""
PROTECTED = """\
These rows are features of images, scaled down to a fixed length at most, with fresh noise that was never
stored. What they tell is bounded, for everybody and for ever:"""
BESIDES = """\
Bits are an average over images. Labels and further columns leave besides, where
there are any, and so does the number of rows. Several rows of one image, or of one person, add up."""


def dataset_card(
    manifest: Manifest, labels: range | None = None, kept: Mapping[str, pa.DataType] | None = None
) -> str:
    """The card's text.

    Args:
        manifest: what the delivery holds.
        labels: from the smallest to the largest label; None where there are none.
        kept: the types of the columns that the provider kept.
    """
    rows = "\n".join(f"| {name} | {facts.rows} |" for name, facts in manifest.splits.items())
    views = "".join(_views(name, facts) for name, facts in manifest.splits.items() if facts.views > 1)
    names = f"\nClasses, from 0: {', '.join(manifest.classes)}.\n" if manifest.classes else ""
    return f"""---
{_head(manifest, labels, kept or {})}
---

{_what(manifest)}
{SHUFFLED if manifest.layout == ShuffledTilesLayout.name else ""}
| split | rows |
|---|---|
{rows}
{views}{names}
Check it with `mole verify`, and {_training(manifest)}. Where
this folder is called `delivery` (if it is sealed, only the first call works, with your identity:
`identity="developer.txt"`):

{_code(manifest)}
{_safety(manifest, is_labelled=labels is not None)}
"""


def _what(manifest: Manifest) -> str:
    """What kind of data this is, and where the software comes from."""
    shape = shape_text(manifest.network_shape)
    if manifest.plain_shape is not None:
        shape += f" (zeros at their ends make them {shape_text(manifest.input_shape)})"
    kind, of = ("Morphed data", "Images of shape")
    if manifest.protection is not None:
        kind, of = ("Protected data", "Noisy features of images, of shape")
    return f"""# {kind}

{of} {shape}, multiplied by a secret matrix and stored as {manifest.dtype}.
They are useful only with the augmented layer beside them. Made with Morphed Learning, which is installed
from the project's repository: `pip install '.[torch]'` there, or `pip install .` to read data alone."""


def _safety(manifest: Manifest, *, is_labelled: bool) -> str:
    """What it hides, and what it does not."""
    if manifest.protection is None:
        return OBFUSCATION
    bounds = "\n".join(f"- {line}" for line in protection_in_words(manifest, is_labelled=is_labelled))
    return f"{PROTECTED}\n\n{bounds}\n\n{BESIDES}\nThe front has the SHA-256 `{manifest.protection.front}`."


def _training(manifest: Manifest) -> str:
    """What a developer learns from it with."""
    if manifest.protection is None:
        return "train on it with `mole.torch.attach` and `mole.torch.MorphedDataset`"
    return (
        "fit a head to it with `mole train`, which knows about the noise. The\n"
        "data's owner makes the head fit for clean images with `mole export-head`"
    )


def _views(split: str, facts: SplitFacts) -> str:
    """What to know of a split that has several rows of each image."""
    return (
        f"\nEach image of `{split}` stands there as {facts.views} rows: itself, and views of it that are "
        "shifted and\nmirrored. Cut no test data out of it: views of one image would be on both sides.\n"
    )


def _code(manifest: Manifest) -> str:
    """How to read it, as code that runs beside its folder."""
    split = "train" if "train" in manifest.splits else next(iter(manifest.splits))
    sides, files = ", ".join(map(str, manifest.input_shape)), json.dumps(f"delivery/data/{split}-*.parquet")
    meaning = INT8 if manifest.dtype == "int8" else FLOATS
    return f"""```python
import mole

data = mole.torch.MorphedDataset("delivery", {json.dumps(split)})
```

{meaning.format(column=manifest.column, sides=sides)}

```python
import datasets
import polars
import pyarrow.parquet

delivery = mole.Delivery.open("delivery")

table = pyarrow.parquet.read_table("delivery/data")  # all splits
images = mole.decode(table, delivery)  # float32, (rows, {sides})

frame = polars.read_parquet({files})
images = mole.decode(frame, delivery)

rows = datasets.load_dataset("delivery")[{json.dumps(split)}]
images = mole.decode(rows[:64], delivery)
```
"""


def _head(manifest: Manifest, labels: range | None, kept: Mapping[str, pa.DataType]) -> str:
    """What `datasets` reads: which files are which split, and what is in their columns."""
    lines = ["configs:", "- config_name: default", "  data_files:"]
    for split in manifest.splits:
        lines += [f"  - split: {split}", f"    path: data/{split}-*.parquet"]
    length = element_count(manifest.input_shape)
    features = [
        ["name: " + ROW_ID, "dtype: string"],
        ["name: " + manifest.column, f"sequence: {manifest.dtype}", f"length: {length}"],
    ]
    if labels is not None:
        features.append(["name: " + LABEL, *_label(manifest.classes, labels)])
    for name, kind in kept.items():
        described = _described(kind)
        if described is None:
            return "\n".join(lines)  # each shard tells its columns: better no list than a wrong one
        features.append(["name: " + _quoted(name), *described])
    lines += ["dataset_info:", "  config_name: default", "  features:"]
    for first, *others in features:
        lines += [f"  - {first}", *(f"    {line}" for line in others)]
    return "\n".join(lines)


def _label(classes: Sequence[str] | None, labels: range) -> list[str]:
    """Labels as classes by name, or by number; as plain numbers where they are not counted from 0."""
    names = list(classes or map(str, range(labels.stop)))
    if labels.start < 0 or not labels.stop <= len(names) <= MOST_CLASSES or len({*names}) < len(names):
        return ["dtype: int64"]
    listed = (f"      '{number}': {_quoted(name)}" for number, name in enumerate(names))
    return ["dtype:", "  class_label:", "    names:", *listed]


def _described(kind: pa.DataType) -> list[str] | None:
    """A type as the head has it; None for one that it has no simple words for."""
    if pa.types.is_fixed_size_list(kind) and str(kind.value_type) in SIMPLE:
        return [f"sequence: {SIMPLE[str(kind.value_type)]}", f"length: {kind.list_size}"]
    if pa.types.is_list(kind) and str(kind.value_type) in SIMPLE:
        return [f"sequence: {SIMPLE[str(kind.value_type)]}"]
    return [f"dtype: {SIMPLE[str(kind)]}"] if str(kind) in SIMPLE else None


def _quoted(text: str) -> str:
    r"""Text in YAML's double quotes.

    >>> print(_quoted('a "b": \x85'))
    "a \"b\": \U00000085"
    """
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(one: str) -> str:
    if one in '"\\':
        return f"\\{one}"
    return one if one.isprintable() else f"\\U{ord(one):08x}"
