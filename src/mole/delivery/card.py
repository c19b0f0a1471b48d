"""README.md of a delivery: a data set card that Hugging Face's `datasets` understands."""

from collections.abc import Mapping, Sequence

from mole.delivery.manifest import SplitFacts
from mole.delivery.options import Options
from mole.geometry import Shape, element_count

CARD = "README.md"


def dataset_card(
    shape: Shape,
    options: Options,
    splits: Mapping[str, SplitFacts],
    classes: Sequence[str] | None,
    *,
    labelled: bool,
) -> str:
    """The card's text: how the files are read, and what they are."""
    dtype = options.dtype
    files = "\n".join(f"  - split: {name}\n    path: data/{name}-*.parquet" for name in splits)
    features = ["  - name: row_id\n    dtype: string"]
    features.append(f"  - name: image\n    list: {dtype}\n    length: {element_count(shape)}")
    if labelled:
        features.append("  - name: label\n    dtype: int64")
    # Types of further columns are left to the reader; listing some features means listing all.
    info = "" if options.keep else "dataset_info:\n  features:\n" + "\n".join(features) + "\n"
    rows = "\n".join(f"| {name} | {facts.rows} |" for name, facts in splits.items())
    names = f"\nClasses, from 0: {', '.join(classes)}.\n" if classes else ""
    return f"""---
configs:
- config_name: default
  data_files:
{files}
{info}---

# Morphed data

Images of shape {"x".join(map(str, shape))}, multiplied by a secret matrix and stored as {dtype}.
They are of use only with the augmented layer beside them. Made with Morphed Learning
(`pip install 'morphed-learning[torch]'`).

| split | rows |
|---|---|
{rows}
{names}
Check it with `mole verify`, and train on it with `mole.torch.MorphedDataset` and `mole.torch.attach`.

This is obfuscation, not encryption: who holds the augmented layer can get the images back. Treat these
files as you would treat the images.
"""
