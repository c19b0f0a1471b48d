"""README.md of a delivery: a data set card that Hugging Face's `datasets` understands."""

from collections.abc import Mapping, Sequence

from mole.exchange.manifest import SplitFacts
from mole.scheme.shapes import Shape

CARD = "README.md"


def dataset_card(
    shape: Shape, dtype: str, splits: Mapping[str, SplitFacts], classes: Sequence[str] | None
) -> str:
    """The card's text: how the files are read, and what they are.

    It says nothing about columns: each shard tells its own, and a second list could only disagree.
    """
    files = "\n".join(f"  - split: {name}\n    path: data/{name}-*.parquet" for name in splits)
    rows = "\n".join(f"| {name} | {facts.rows} |" for name, facts in splits.items())
    names = f"\nClasses, from 0: {', '.join(classes)}.\n" if classes else ""
    sides = ", ".join(map(str, shape))
    return f"""---
configs:
- config_name: default
  data_files:
{files}
---

# Morphed data

Images of shape {"x".join(map(str, shape))}, multiplied by a secret matrix and stored as {dtype}.
They are useful only with the augmented layer beside them. Made with Morphed Learning
(`pip install 'morphed-learning[torch]'`).

| split | rows |
|---|---|
{rows}
{names}
Check it with `mole verify`, and train on it with `mole.torch.MorphedDataset` and `mole.torch.attach`. Other
readers of Parquet find each image as one list of numbers; `.reshape({sides})` gives it its shape.

This is obfuscation, not encryption: whoever holds the augmented layer can get the images back. Treat these
files as you would treat the images.
"""
