"""The tables of docs/performance.md about the augmented layer: in whole networks, and beside its peers."""

from typing import Any

from mole.quantities import size_text

Rows = list[tuple[str, ...]]

PEERS = {
    "tiles of 8": "ours, tiles of 8",
    "rows, factored": "ours, rows in two factors",
    "rows": "ours, rows (the paper's)",
    "crypten": "CrypTen, two parties",
    "tenseal": "TenSEAL, encrypted (CKKS)",
}
NETWORK_WORDS = (
    "Processor, a sample, medians of some rounds in which both take turns. A training"
    " step is forward, backward and SGD; the augmented layer is frozen, which saves its gradient."
    " ResNet-50 and ViT-B/16 at 3x224x224, where blocks of rows would need 483 GB and 91 GB; "
    "VGG-16 at 3x32x32. ViT's patches are its tiles: layer and cost are the plain ones."
)
PEER_WORDS = (
    "One convolution (3x3, 64 channels) on one image of 3x32x32; processor, a sample, time on the"
    " wire not counted. **These are not the same thing**: the peers keep the image from the "
    "developer, and morphing does not. The ratio is the price of that guarantee, and no reason to"
    " do without it. The augmented layer crosses the wire once besides. Peers' batches fill a "
    "ciphertext (4 images) or a message (16); nothing is extrapolated. Only the first layer: with"
    " ours the rest of the network runs as it is, with the peers it costs more still."
)


def network_rows(read: dict[str, Any]) -> Rows:
    """The augmented layer in whole networks."""
    rows: Rows = [
        (
            "network",
            "what",
            "blocks",
            "ours, ms",
            "limit: plain, ms",
            "times plain",
            "from - to",
            "rounds",
            "layer",
            "plain",
        )
    ]
    for row in read["results"]:
        spread = f"{row['lowest']:.2f} - {row['highest']:.2f}"
        times = (f"**{row['times_plain']:.2f}**", spread, str(row["rounds"]))
        milliseconds = (f"{row[f'{name}_ms_a_sample']:.1f}" for name in ("augmented", "plain"))
        sizes = (size_text(row[name]) for name in ("layer_bytes", "plain_layer_bytes"))
        blocks = "rows, one matrix" if row["blocks"] == "rows" else row["blocks"]  # not in two factors
        rows.append((row["network"], row["what"], blocks, *milliseconds, *times, *sizes))
    return rows


def peer_rows(read: dict[str, Any]) -> Rows:
    """What one would use instead."""
    results = read["results"]
    plain = min(row["plain_s"] for row in results.values() if "plain_s" in row)
    rows: Rows = [
        (
            "way",
            "provider, ms",
            "developer, ms",
            "together, times tiles",
            "bytes",
            "error",
            "what it guarantees",
        )
    ]
    for name, told in PEERS.items():
        if name not in results:
            continue
        row = results[name]
        milliseconds = (f"{1000 * row[f'{who}_s']:.2f}" for who in ("provider", "developer"))
        size = size_text(row["bytes"])
        if name == "tenseal":
            size += f", features {size_text(row['bytes_of_features'])}"
        times = f"{row['times_tiles_of_8']:,}"
        rows.append((told, *milliseconds, times, size, f"{row['error']:.0e}", row["guarantees"]))
    rows.append(("limit: plain layer", "0", f"{1000 * plain:.2f}", "-", "3.1 kB", "0", "nothing"))
    return rows
