"""The table of docs/performance.md about servers, from what `benchmarks/serving.py` wrote."""

from typing import Any

HEAD = (
    "network",
    "data",
    "over",
    "ours, requests/s",
    "limit: plain",
    "share of plain",
    "from - to",
    "by multiplications",
    "first layer / plain",
    "p50, ms",
    "p99, ms",
)


def serving_rows(read: dict[str, Any]) -> list[tuple[str, ...]]:
    """Each network with morphed data beside itself with plain data, over each protocol."""
    plain = {(row["network"], row["door"]): row for row in read["networks"] if row["data"] == "plain"}
    rows: list[tuple[str, ...]] = [HEAD]
    for row in read["networks"]:
        if row["data"] == "plain":
            continue
        bare = plain[row["network"], row["door"]]
        rates = (f"{one['requests_per_s']:,}" for one in (row, bare))
        share, lowest, highest, by_macs = (
            f"{100 * row[name]:.0f}"
            for name in ("share_of_plain", "lowest", "highest", "share_of_plain_by_macs")
        )
        layers = " / ".join(f"{one['first_layer_macs'] / 1e6:,.1f} M" for one in (row, bare))
        times = (f"{row[name]:.1f}" for name in ("p50_ms", "p99_ms"))
        shares = (f"**{share} %**", f"{lowest} - {highest} %", f"{by_macs} %")
        rows.append((row["network"], row["data"], row["door"], *rates, *shares, layers, *times))
    return rows


def serving_words(read: dict[str, Any]) -> str:
    """What to know of it."""
    many = {row["batch_rows"]: row for row in read["batching"]}
    most = max(many)
    return (
        f"`mole serve` and {read['clients']} clients that ask without pause, on the same machine; plain and"
        f" morphed take turns in {read['rounds']} rounds. Requests of 8 rows of 3x32x32 (small_resnet,"
        " VGG-16), or of one of 3x224x224. *By multiplications* is the share that remains if all of them"
        " cost the same, and those of the first layer, a row, stand next to it. Blocks of rows also read"
        " hundreds of megabytes of weights for every request. Of requests of one row from"
        f" {many[most]['clients']} clients, `--batch-rows {most}` answers"
        f" {many[most]['share_of_alone']:.2f} times as many."
    )
