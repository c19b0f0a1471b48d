"""The tables of docs/performance.md about more and larger images, from what `benchmarks/scale.py` wrote."""

from itertools import pairwise
from typing import Any

from mole.quantities import size_text

Rows = list[tuple[str, ...]]

RAY_WORDS = (
    "The same through Ray, which the delivery starts on the same machine. Processor and memory are"
    " those of all processes, Ray's own included, and mostly these: its start is a fixed part."
)


def number_rows(read: dict[str, Any]) -> Rows:
    """More and more images."""
    rows: Rows = [
        (
            "images",
            "processor, ms a sample",
            "each further one",
            "wall, s",
            "memory",
            "with the mapped file",
            "bytes / plain",
        )
    ]
    for row, further in zip(read["results"], further_costs(read["results"]), strict=True):
        sizes = (size_text(row[name] * 10**6) for name in ("own_memory_mb", "with_mapped_file_mb"))
        cells = (f"{row['processor_ms_a_sample']:.3f}", further, f"{row['whole_delivery_s']:.0f}", *sizes)
        rows.append((f"{row['images']:,}", *cells, f"{row['bytes_over_plain']:.2f}"))
    return rows


def number_words(read: dict[str, Any]) -> str:
    """What to know of them."""
    return (
        f"Images of 1x32x32 in an .npy file, tiles of {read['tile']}, 8 bits. Limit: flat, and 1.00 of"
        " the plain bytes. A part of the cost is fixed, so that a sample is cheaper the more there are;"
        " each further one costs the difference to the row above over the difference in images. Wall is of"
        " the whole delivery. The mapped file's pages are the system's to take back."
    )


def further_costs(rows: list[dict[str, Any]]) -> list[str]:
    """What each image beyond those of the delivery before costs, in ms."""
    spent = [row["images"] * row["processor_ms_a_sample"] for row in rows]
    pairs = zip(pairwise(spent), pairwise(rows), strict=True)
    costs = [
        (after - before) / (more["images"] - fewer["images"]) for (before, after), (fewer, more) in pairs
    ]
    return ["-", *(f"{cost:.3f}" for cost in costs)]


def ray_rows(read: dict[str, Any]) -> Rows:
    """More and more images, with Ray."""
    rows: Rows = [("images", "processor, ms a sample", "each further one", "wall, s", "memory")]
    for row, further in zip(read["results"], further_costs(read["results"]), strict=True):
        memory = size_text(row["own_memory_mb"] * 10**6)
        cells = (f"{row['processor_ms_a_sample']:.3f}", further, f"{row['whole_delivery_s']:.0f}", memory)
        rows.append((f"{row['images']:,}", *cells))
    return rows


def size_rows(read: dict[str, Any]) -> Rows:
    """Larger and larger images."""
    rows: Rows = [
        ("images", "number", "processor, ms a sample", "processor, s a megapixel", "wall, s", "memory")
    ]
    for row in read["results"]:
        cells = (f"{row['processor_ms_a_sample']:.2f}", f"{row['processor_s_a_megapixel']:.3f}")
        wall, memory = f"{row['whole_delivery_s']:.0f}", size_text(row["own_memory_mb"] * 10**6)
        rows.append((row["shape"], f"{row['images']:,}", *cells, wall, memory))
    return rows


def size_words(read: dict[str, Any]) -> str:
    """What to know of them."""
    return (
        f"As many pixels in all each time, tiles of {read['tile']}, 8 bits. Limit: a flat cost a megapixel."
        " Processor counts from the first row to the last. Wall is of the whole delivery: before its rows,"
        " the augmented layer is checked on a few images, however many follow."
    )
