"""Write docs/performance.md from the results of the benchmarks: `python tools/performance.py`.

One table for each question: ours, the limit that the machine sets, and what one would do instead.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from network_tables import NETWORK_WORDS, PEER_WORDS, network_rows, peer_rows
from open_key_table import open_key_rows, open_key_words
from scale_tables import number_rows, number_words, ray_rows, ray_words, size_rows, size_words
from serving_table import serving_rows, serving_words

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"

Rows = list[tuple[str, ...]]

INTRODUCTION = """\
# Performance

Made by `python tools/performance.py` from the results in `benchmarks/results`; `make bench` measures them
again. Each table answers one question: what ours takes, the limit that the machine or the plain network
sets, and what one would do instead. **Only ratios within a table count**: the machine has two cores, and
tables were not all measured on one day. Each says how much of the machine others used meanwhile, if that
was measured; where nothing is said of it, others used it too. Where it says *processor*, processor time was
counted, which suffers least from that.
"""


def result(name: str) -> dict[str, Any]:
    """What a benchmark wrote."""
    read: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return read


def section(question: str, benchmark: str, text: str, rows: Iterable[Iterable[str]]) -> str:
    """A heading, where the figures come from, what to know of them, and a table; its head comes first."""
    head, *body = [list(row) for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in (head, *body)]
    lines.insert(1, "|" + "---|" * len(head))
    source = f"[`{benchmark}.json`](../benchmarks/results/{benchmark}.json), {machine(benchmark)}"
    return "\n".join([f"## {question}", "", f"{source}. {text}".rstrip(), "", *lines, ""])


def machine(benchmark: str) -> str:
    """The machine of a result, in a line."""
    read = result(benchmark)
    told = read["machine"]
    words = [
        told["processor"],
        f"{told['cores']} cores",
        f"Python {told['python']}",
        f"NumPy {told['numpy']}",
    ]
    if "version" in read:
        words.append(f"version {read['version']}")
    used = told.get("processors_used_by_others")
    if used is not None and benchmark != "scale_ray":  # Ray's own processes count as others there
        share = 100 * used / told["cores"]
        words.append(f"others used {share:.0f} % of it" if share >= 1 else "nobody else at work")
    return ", ".join(words)


def morph() -> str:
    """Morphing in memory."""
    read = result("morph")
    rows: Rows = [
        (
            "kappa",
            "ours, images/s",
            "limit: bare matrix product",
            "share of the limit",
            "middle half of rounds",
        )
    ]
    for row in read["kappas"]:
        samples = row["images_per_s"] * row["morph"]["median_s"]
        bare = samples / row["bare_product"]["median_s"]
        share = f"{100 * row['share_of_bare_product']:.0f} %"
        low, high = (f"{100 * value:.0f}" for value in row["middle_half_of_shares"])
        rows.append(
            (
                str(row["kappa"]),
                f"{row['images_per_s']:,}",
                f"{round(bare, -2):,.0f}",
                share,
                f"{low} - {high} %",
            )
        )
    text = (
        f"{read['size']}; more than 100 % is noise. Each product is timed after a rest, in {read['rounds']}"
        " rounds; shares of short products spread. kappa = 1 is the default, and hides most."
    )
    return section("How fast is data morphed?", "morph", text, rows)


def augment() -> str:
    """Building the augmented layer."""
    read = result("augment")
    words = {
        "augment": "ours",
        "copy_of_the_result": "limit: writing as many numbers",
        "torch_convolution": "instead: convolve the inverse with PyTorch",
        "paper_dense_product": "instead: the paper's matrix product",
    }
    ours = read["seconds"]["augment"]["median_s"]
    rows: Rows = [("way", "seconds", "times ours")]
    for name, told in words.items():
        seconds = read["seconds"][name]["median_s"]
        rows.append((told, f"{seconds:.2f}", f"{seconds / ours:.1f}"))
    memory = read["memory"]["peak_over_result"]
    text = (
        f"{read['size'].capitalize()}. Memory: {memory} times the result's, the key included. {factors()}"
    )
    return section("How long does the augmented layer take to build?", "augment", text, rows)


def factors() -> str:
    """What the same layer gains and costs in two factors."""
    read = result("augmented_forward")
    fewer = read["bytes"]["dense"] / read["bytes"]["factored"]
    forward, step = read["forward_by_batch"]["64"], read["training_step_of_vgg16_batch_64"]
    return (
        f"In two factors it has {fewer:.2f} times fewer numbers. Running it on 64 images is then "
        f"{forward['times_faster_in_factors']} times faster and a training step of VGG-16 "
        f"{step['times_faster_in_factors']} times; building it takes "
        f"{1 / read['build']['times_faster_in_factors']:.2f} times as long "
        "([`augmented_forward.json`](../benchmarks/results/augmented_forward.json), ratios within one run "
        "on a machine that others used as well)."
    )


def open_key() -> str:
    """What a command pays before its first image."""
    read = result("open_key")
    return section("What does opening a key cost?", "open_key", open_key_words(read), open_key_rows(read))


def deliver() -> str:
    """A whole delivery."""
    read = result("deliver")
    words = {
        "float32": "ours, float32",
        "int8": "ours, 8 bits",
        "ray": "instead: Ray on the same machine, float32",
    }
    rows: Rows = [
        ("way", "images/s", "limit: bare matrix product", "share of the limit", "bytes / plain", "memory")
    ]
    for name, told in words.items():
        row = read[name]
        share = f"{100 * row['share_of_bare_product']:.0f} %"
        bare = f"{row['bare_product_images_per_s']:,}"
        size = f"{row['data_bytes_over_plain_8_bit_bytes']:.2f}"
        memory = f"{row['peak_memory_gb']} GB"
        rows.append((told, f"{row['images_per_s']:,}", bare, share, size, memory))
    text = (
        f"{read['float32']['rows']:,} images of 3x32x32, kappa = 1, from reading to finished shards. "
        "Ray counts its own start; without it, it reaches "
        f"{100 * read['ray']['share_of_local_rate_without_start']:.0f} % of the local rate. It pays with"
        " more machines."
    )
    if "version" not in read:
        text += " Measured with version 0.3."
    if share := read["float32"].get("sealed_share_of_open_rate"):
        int8 = read["int8"]["sealed_share_of_open_rate"]
        text += (
            f" Sealed for its receiver, a delivery is written at {100 * share:.0f} % of that rate, and at "
            f"{100 * int8:.0f} % in 8 bits."
        )
    return section("How fast is a data set delivered?", "deliver", text, rows)


def networks() -> str:
    """The augmented layer in whole networks."""
    question = "What does the augmented layer cost a network?"
    return section(question, "networks", NETWORK_WORDS, network_rows(result("networks")))


def peers() -> str:
    """What one would use instead."""
    return section("What would one use instead?", "peers", PEER_WORDS, peer_rows(result("peers")))


def numbers() -> str:
    """More and more images."""
    read = result("scale_numbers")
    question = "Does the cost grow with the number of images?"
    return section(question, "scale_numbers", number_words(read), number_rows(read))


def through_ray() -> str:
    """More and more images, with Ray."""
    read = result("scale_ray")
    return section("And through Ray?", "scale_ray", ray_words(read), ray_rows(read))


def decoding() -> str:
    """Folders of image files."""
    read = result("decoding")
    rows: Rows = [("files", "ours, images/s", "limit: Pillow on all cores", "share of the limit")]
    for row in read["folders"]:
        rounds = sorted(row["shares_of_each_round"])
        share = f"{100 * row['share_of_decoding']:.0f} % ({100 * rounds[0]:.0f} - {100 * rounds[-1]:.0f})"
        limit = f"{row['decoded_by_pillow_per_s']:,}"
        rows.append((row["images"], f"{row['images_per_s']:,}", limit, share))
    text = (
        f"Folders of image files, {read['pictures']}, tiles of 8, 8 bits: decoded, morphed and written."
        " Limit: Pillow decodes the same files, a thread for each core, and nothing else. Medians of"
        f" {read['rounds']} rounds in which both take turns, of each column by itself; in brackets the"
        " least and the largest share."
    )
    return section("What does it cost beside decoding?", "decoding", text, rows)


def sizes() -> str:
    """Larger and larger images."""
    read = result("scale_sizes")
    return section("Does it grow with their size?", "scale_sizes", size_words(read), size_rows(read))


def serving() -> str:
    """Requests to a server."""
    read = result("serving")
    return section("What does morphing cost a server?", "serving", serving_words(read), serving_rows(read))


def document() -> str:
    """The whole document."""
    parts = [morph, open_key, augment, deliver, networks, peers, numbers, through_ray, sizes]
    if (RESULTS / "decoding.json").exists():  # not measured yet on a machine that was quiet enough
        parts.insert(4, decoding)
    if (RESULTS / "serving.json").exists():  # nor this
        parts.append(serving)
    return "\n".join([INTRODUCTION, *(part() for part in parts)])


if __name__ == "__main__":
    DOCUMENT.write_text(document())
