"""The tables of docs/performance.md about more and larger images, from what `benchmarks/scale.py` wrote."""

from typing import Any

from mole.quantities import size_text

Rows = list[tuple[str, ...]]


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
    for row in read["results"]:
        sizes = (size_text(row[name] * 10**6) for name in ("own_memory_mb", "with_mapped_file_mb"))
        rows.append((*_costs(row), *sizes, f"{row['bytes_over_plain']:.2f}"))
    return rows


def number_words(read: dict[str, Any]) -> str:
    """What to know of them."""
    fewest, most = read["results"][0], read["results"][-1]
    return (
        f"Images of 3x32x32 in an .npy file, tiles of {read['tile']}, 8 bits. Limit: flat, and 1.00 of the"
        " plain bytes. A part of the cost is fixed, which weighs most where images are few. Each"
        " further one costs the difference to a delivery of half as many, over the difference in images:"
        f" {_times(read):.2f} times as much for {most['images']:,} as for {fewest['images']:,}. The mapped"
        " file's pages, those of writing the images included, are the system's to take back."
    )


def ray_rows(read: dict[str, Any]) -> Rows:
    """More and more images, with Ray."""
    rows: Rows = [("images", "processor, ms a sample", "each further one", "wall, s", "memory")]
    return rows + [(*_costs(row), size_text(row["own_memory_mb"] * 10**6)) for row in read["results"]]


def ray_words(read: dict[str, Any]) -> str:
    """What to know of them."""
    fewest, more, most = (read["results"][place]["images"] for place in (0, 1, -1))
    return (
        f"The same through a Ray on this machine that runs already, in shards of {read['rows_per_shard']:,}"
        " rows. Processor is all that the machine did, Ray's own processes included, and memory theirs."
        " Workers are started for each delivery, which is a fixed part and most of what 10,000 images cost."
        " Each further one counts from a fifth of the rows to four fifths, while all workers work:"
        f" {_times(read):.2f} times as much for {most:,} as for {fewest:,},"
        f" and {_times(read, 1):.2f} times as much as for {more:,}."
    )


def _costs(row: dict[str, Any]) -> tuple[str, ...]:
    each, further = (f"{row[f'processor_ms_{name}_sample']:.3f}" for name in ("a", "each_further"))
    return f"{row['images']:,}", each, further, f"{row['wall_s']:.0f}"


def _times(read: dict[str, Any], row: int = 0) -> float:
    """What each further image costs where they are most, over what it costs in an earlier row."""
    fewer, most = (read["results"][place]["processor_ms_each_further_sample"] for place in (row, -1))
    return float(most / fewer)


def size_rows(read: dict[str, Any]) -> Rows:
    """Larger and larger images."""
    rows: Rows = [
        (
            "images",
            "number",
            "processor, ms a sample",
            "s a megapixel of rows",
            "wall, s",
            "memory",
        )
    ]
    for row in read["results"]:
        cells = (f"{row['processor_ms_a_sample']:.2f}", f"{row['processor_s_a_megapixel_of_rows']:.3f}")
        wall, memory = f"{row['wall_s']:.0f}", size_text(row["own_memory_mb"] * 10**6)
        rows.append((row["shape"], f"{row['images']:,}", *cells, wall, memory))
    return rows


def size_words(read: dict[str, Any]) -> str:
    """What to know of them."""
    return (
        f"As many pixels in all each time, tiles of {read['tile']}, 8 bits. Limit: a flat cost a megapixel."
        " The cost a megapixel counts from the first row to the last; the cost a sample is of the whole"
        " delivery, with the check of the augmented layer, which grows with its size, and the fit of 8-bit"
        " scales, here mostly to all images."
    )
