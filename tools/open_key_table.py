"""The table of docs/performance.md on opening a key, and its words."""

from typing import Any

STEPS = ("import", "open", "core and ten images", "sum")


def open_key_rows(read: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each kind of core and number of threads; the head first."""
    rows: list[tuple[str, ...]] = [
        (
            "core",
            "threads",
            "import, s",
            "open, s",
            "core and images, s",
            "in all, s",
            f"version {read['rows'][0]['version_before']}, times ours",
        )
    ]
    for row in read["rows"]:
        seconds = [f"{row['now'][step]['seconds']:.1f}" for step in STEPS]
        times = row["seconds_before_over_now"], row["processor_seconds_before_over_now"]
        rows.append((row["core"], str(row["threads"]), *seconds, "{:.2f}; processor {:.2f}".format(*times)))
    return rows


def open_key_words(read: dict[str, Any]) -> str:
    """What to know of it."""
    return (
        f"A process that opens a key of side {read['side']:,} and morphs ten images of 3x32x32; medians of "
        f"{read['rounds']} rounds in which both versions take turns. Threads are those of"
        " `OMP_NUM_THREADS`. A process that stays open pays for the key and its core once."
    )
