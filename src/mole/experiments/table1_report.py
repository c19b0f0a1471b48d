"""The comparison as tables, every cell with its source, and as a drawing."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mole.experiments.drawing import BLUE, GREEN, GREY, INK, ORANGE, RED, figure_style
from mole.experiments.experiment import Result
from mole.experiments.frontier_report import markdown
from mole.quantities import size_text

ALT = (
    "Two panels over the bits that a method lets through about an image. Above, accuracy: features with "
    "noise lose it while hundreds of bits still pass; protected deliveries lose it slowly, down to one bit."
    " Below, the share of images that the best attacker picks out: all of them for features with noise and "
    "for MoLe, few of them for protected deliveries at one bit."
)
NO_LIMIT = 3e5  # bits, where the drawing has methods without a certificate
PUBLISHED = (
    ["MoLe", "0", "0.05x", "0.09x", "7.9e-90"],
    ["SMC based (GAZELLE)", "0", "421,000x", "10,000x", "2.9e-39"],
    ["feature transmission based", "0.628x higher error rate", "64x", "0", "not reported"],
)
HEADS = (
    "method", "accuracy", "penalty", "sent for an image", "sent once", "provider computes for an image",
    "developer computes besides", "what attackers got", "certificate",
)  # fmt: skip


def report(result: Result) -> str:
    """Both tables, and where the cells come from."""
    plain = result["rows"][0]["accuracy"]["mean"]
    lines = [_line(row, result, plain, result["rows"]) for row in result["rows"]]
    peers = (
        "TenSEAL and CrypTen: `benchmarks/results/peers.json`, one convolution (3x3, 64 channels) on an "
        "image of 3x32x32, processor time of one thread; what is marked *extrapolated* is that for the "
        "whole of VGG-16: time by multiplications, bytes by features, without what activations take, so "
        "at least that. They promise far more than morphing does."
        if result["peers"]
        else "Peers were not given."
    )
    words = (
        f"Measured: {result['images']}, {result['train_images']:,} images to learn from, "
        f"{result['test_images']:,} for tests, {result['public_images']:,} public ones for the developer; "
        f"{result['network']} for {result['epochs']} epochs, mean of {result['seeds']} seeds (from least "
        "to largest). *Counted* are multiplications and bytes. Attackers: the share of rebuilt images that "
        "are more like their own original than any other of 256; or of rows whose own image has the "
        "nearest features among the candidates. Deliveries were attacked with a first layer of "
        f"{_attacked(result)['channels']} channels and {_attacked(result)['delivered']:,} images."
    )
    published = [["method (paper)", "penalty", "transmission", "computing", "attack success probability"]]
    return "\n\n".join(
        [words, peers, markdown([[*HEADS], *lines]), "What the paper's Table 1 says:",
         markdown([*published, *PUBLISHED])]
    )  # fmt: skip


def _attacked(result: Result) -> Result:
    found: Result = next(row["attacks"] for row in result["rows"] if "attacks" in row)
    return found


def name_of(row: Result) -> str:
    """A row's method in words."""
    if row["method"] == "MoLe":
        how = "blocks of rows, kappa 1, Gaussian core" if row["tile"] is None else (
            f"tiles of {row['tile']}, whitened core"
        )  # fmt: skip
        return f"MoLe, {how}"
    if row["method"] == "features with noise":
        noise = "no noise" if row["noise"] is None else f"noise {row['noise']:g} times the features"
        return f"first layer's features, {noise}"
    if row["method"] == "protected":
        bits = "no noise" if row["bits"] is None else f"{row['bits']:g} bit{'s' * (row['bits'] != 1)}"
        return f"protected, front: {row['front']}, {bits}"
    return str(row["method"])


def _line(row: Result, result: Result, plain: float, rows: Sequence[Result]) -> list[str]:
    accuracy, penalty = "-", "-"
    if "accuracy" in row:
        found = row["accuracy"]
        accuracy = f"{100 * found['mean']:.1f} % ({100 * found['low']:.1f} - {100 * found['high']:.1f})"
        penalty = f"{100 * (plain - found['mean']):+.1f} points" if row["method"] != "plain data" else "0"
        if row["method"] == "protected" and row["bits"] is not None:
            own = next(one for one in rows if one.get("front") == row["front"] and one["bits"] is None)
            less = 100 * (own["accuracy"]["mean"] - found["mean"])
            penalty += f"; {less:+.1f} of its front without noise"
    elif "error" in row:
        penalty = f"features differ by {row['error']:.0e} (peers.json)"
    sent = f"{size_text(row['bytes'])}, {row['bytes'] / result['elements']:.3g} times the image"
    if "whole_network_bytes" in row:
        whole = size_text(row["whole_network_bytes"])
        sent = f"{size_text(row['bytes'])} (peers.json); {whole} *extrapolated*"
    once = f"{size_text(row['bytes_once'])} (counted)" if "bytes_once" in row else "-"
    return [name_of(row), accuracy, penalty, sent, once, *_computing(row), _attacks(row), _certificate(row)]


def _computing(row: Result) -> list[str]:
    provider = []
    if row.get("provider_macs") is not None:
        provider.append(f"{row['provider_macs'] / 1e6:,.1f} M multiplications (counted)")
    if "provider_ms" in row:
        provider.append(f"{row['provider_ms']:g} ms (peers.json)")
    developer = []
    if "developer_ms" in row:
        developer.append(f"{row['developer_ms']:g} ms for the first layer (peers.json)")
    if "whole_network_s" in row:
        developer.append(f"{row['whole_network_s']:g} s for both and all of VGG-16 *extrapolated*")
    return ["; ".join(provider) or "-", "; ".join(developer) or "-"]


def _attacks(row: Result) -> str:
    if row["method"] == "plain data":
        return "nothing is hidden"
    if "attacks" in row:
        people = {"developer": "developer", "thief": "holder of the delivery", "outsider": "stranger"}
        found = {people[key]: row["attacks"][key] for key in people}
        return "; ".join(
            f"{who} {100 * one['reidentified']:.1f} % ({one['attack']}, {one['psnr']:.0f} dB)"
            for who, one in found.items()
        )
    if "guarantees" in row:
        return f"none tried; it promises: {row['guarantees']}"
    if row["method"] == "features with noise":
        return (
            f"nearest of {row['candidates']:,}: {100 * row['nearest']:.1f} %; rebuilt by undoing the layer "
            f"{100 * row['rebuilt']:.1f} % of {row['among']}, {row['psnr']:.1f} dB"
        )
    if row["nearest"] is None:
        return "not tried without noise"
    return f"nearest of {row['candidates']:,}: {100 * row['nearest']['mean']:.1f} %"


def _certificate(row: Result) -> str:
    if "guarantees" in row:
        return "its own promise"
    if row.get("bits") is None:
        return "none"
    most = f", at most {100 * row['at_most']:.1f} % picked out" if row.get("at_most") is not None else ""
    return f"at most {row['bits']:,g} bit{'s' * (row['bits'] != 1)} an image{most}"


def draw(result: Result) -> Figure:
    """Accuracy and what attackers pick out, over bits."""
    with figure_style():
        figure = Figure(figsize=(9.0, 6.6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        for axes in (above, below):
            _all_points(axes, result["rows"], is_accuracy=axes is above)
            axes.set_xscale("log")
        above.set(ylabel="test accuracy, %", title="What is left to learn from")
        below.set(
            ylabel="picked out by the best attacker, %", ylim=(-4, 106), title="What is given away",
            xlabel="bits that a method lets through about an image, at most",
        )  # fmt: skip
        ticks = [1, 10, 100, 1000, 10_000]
        below.set_xticks([*ticks, NO_LIMIT], labels=[*(f"{tick:,}" for tick in ticks), "no limit"])
        below.minorticks_off()
        figure.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        figure.supxlabel(
            f"{result['images']}, {result['train_images']:,} images to learn from; mean of "
            f"{result['seeds']} seeds. Heads trained on protected rows are tested on clean images.",
            fontsize=8,
        )
    return figure


def _all_points(axes: Axes, rows: Sequence[Result], *, is_accuracy: bool) -> None:
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in rows:
        look = _look(row)
        if look is not None:
            value = row["accuracy"]["mean"] if is_accuracy else _picked(row)
            if value is not None:
                groups.setdefault(look, []).append((row.get("bits") or NO_LIMIT, 100 * value))
    for place, ((label, colour, marker), points) in enumerate(groups.items()):
        beside = 1.3 ** (place - 2)  # methods without a limit stand beside one another
        moved = [(bits * beside if bits == NO_LIMIT else bits, value) for bits, value in points]
        bits, values = zip(*sorted(moved), strict=True)
        axes.plot(bits, values, color=colour, marker=marker, label=label, markersize=6, linewidth=1.3)
    axes.axvline(NO_LIMIT, color=GREY, linewidth=0.8, linestyle=":", zorder=0)


def _look(row: Result) -> tuple[str, str, str] | None:
    if row["method"] == "protected":
        is_own = row["front"] == "the developer's network"
        return (f"protected, {row['front']}", GREEN if is_own else BLUE, "o" if is_own else "s")
    looks = {
        "plain data": ("plain data", INK, "*"),
        "features with noise": ("first layer's features, noise", ORANGE, "D"),
    }
    if row["method"] == "MoLe":
        return ("MoLe", RED, "^")
    return looks.get(row["method"])


def _picked(row: Result) -> float | None:
    """The share that the best attacker picks out."""
    if row["method"] == "plain data":
        return 1.0
    if "attacks" in row:
        return float(max(row["attacks"][who]["reidentified"] for who in ("developer", "thief", "outsider")))
    nearest = row["nearest"]
    share: float | None = nearest["mean"] if isinstance(nearest, dict) else nearest
    return share
