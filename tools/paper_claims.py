"""The paper's claims about accuracy and security, and its appendix: each with what was measured."""

from collections.abc import Iterator

from paper_results import (
    NOT_YET,
    NOTHING,
    Claim,
    Row,
    accuracy,
    attack,
    difference,
    figures,
    if_there,
    needed,
    network,
    numbers,
    peer_times,
    result,
)
from table1_words import features_errors


def abstract() -> Iterator[Claim]:
    """Abstract, introduction and related work."""
    cifar = figures("cifar-vgg16")
    share, data = cifar["inference share"], cifar["data share"]
    forward, training = (network("VGG-16", what, "rows") for what in ("forward", "training step"))
    factored = network("VGG-16", "forward", "rows, factored")
    yield Claim(
        "abstract", "computational overhead, VGG-16 on CIFAR", share.words("published"),
        f"{share.words('by_formula')} (equation 17)",
        f"inference {forward:.2f} times plain, {factored:.2f} in two factors; a training step "
        f"{training:.2f} times",
        f"9 % is equation 16, the provider's cost, which gives "
        f"{cifar['provider share'].words('by_formula')}",
    )  # fmt: skip
    layer = cifar["plain bytes"].counted or 1
    deliver, vgg = needed("deliver"), needed("networks")["results"]
    sizes = {r["blocks"]: r["layer_bytes"] / layer for r in vgg if r["network"] == "VGG-16"}
    yield Claim(
        "abstract", "transmission overhead, CIFAR", data.words("published"), data.words("by_formula"),
        f"layer {100 * sizes['rows']:.0f} % of the images' bytes, {100 * sizes['rows, factored']:.0f} % "
        f"in two factors, "
        f"{100 * sizes['tiles of 8']:.0f} % in tiles of 8; data besides "
        f"{deliver['int8']['data_bytes_over_plain_8_bit_bytes']:.2f} times in 8 bits, "
        f"{deliver['float32']['data_bytes_over_plain_8_bit_bytes']:.2f} in 32",
        f"the formula is the size of M^-1; C^ac has {data.words('counted')} of the images' elements",
    )  # fmt: skip
    tenseal, crypten = peer_times("tenseal"), peer_times("crypten")
    yield Claim(
        "abstract", "GAZELLE's computational overhead", "10,000 times", NOTHING,
        f"not GAZELLE; first layer alone: TenSEAL {tenseal[0]:,.0f} times the plain layer, CrypTen "
        f"{crypten[0]:,.0f}",
        "cited, of another machine; peers promise far more than morphing does",
    )  # fmt: skip
    yield Claim(
        "abstract", "GAZELLE's transmission overhead", "421,000 times", NOTHING,
        f"not GAZELLE; first layer alone: TenSEAL {tenseal[1]:,.0f} times the image, CrypTen "
        f"{crypten[1]:,.0f}",
        "cited; the whole network would take more",
    )  # fmt: skip
    found = attack("channel-fingerprint")
    order = cifar["channel order guess"]
    yield Claim(
        "abstract", "attack success rate, MoLe", order.words("published"), order.words("by_formula"),
        f"{100 * found['channels']:.0f} % of the channels in order, {100 * found['reidentified']:.0f} % "
        f"of 256 images rebuilt "
        f"({found['psnr']:.0f} dB), in {found['seconds']:.0f} s",
        "the augmented layer shows the order: nobody has to guess",
    )  # fmt: skip
    gazelle = cifar["gazelle guess"]
    yield Claim(
        "abstract", "attack success rate, GAZELLE", gazelle.words("published"), gazelle.words("counted"),
        NOTHING, "Table 1 has 2.9e-39, which is 2^-128",
    )  # fmt: skip
    yield Claim(
        "introduction", "penalty for VGG-16 with the augmented layer", "within the margin of "
        "error", NOTHING,
        if_there("table2", lambda read: "; ".join(
            f"{name}: {difference(read, data, 'augmented')}"
            for data, name in (("cifar10", "CIFAR-10"), ("cifar100", "CIFAR-100"))
        )), "seed by seed, against plain data; see Table 2",
    )  # fmt: skip
    yield Claim(
        "related work",
        "inference on encrypted MNIST, 16 cores",
        "2 hours",
        NOTHING,
        "not measured",
        "cited",
    )
    yield Claim(
        "related work", "feature transmission, CIFAR-10: higher error rate", "62.8 %", NOTHING,
        if_there("table1", features_errors), "cited; ours is the first layer's features, by noise",
    )  # fmt: skip


def table2() -> Iterator[Claim]:
    """The experiments with the augmented layer."""
    published = {"cifar10": ("87.2 %", "87.4 %", "15.8 %"), "cifar100": ("55.9 %", "56.4 %", "2.01 %")}
    names = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
    arms = {
        "plain": "plain data",
        "augmented": "morphed, augmented layer",
        "without": "morphed, without it",
    }
    read = result("table2")
    remark = "" if read is None else f"preset `{read['preset']}`: a smaller budget, so compare arms"
    for data, accuracies in published.items():
        for (arm, words), number in zip(arms.items(), accuracies, strict=True):
            measured = NOT_YET if read is None else accuracy(read, data, arm)
            yield Claim("Table 2", f"{names[data]}, {words}: accuracy", number, NOTHING, measured, remark)


def security() -> Iterator[Claim]:
    """The security analysis."""
    cifar, imagenet = figures("cifar-vgg16"), figures("imagenet-resnet152")
    core, guess = cifar["core guess"], attack("brute-force-core")
    yield Claim("brute force", "elements of the core, kappa = 1", "3072^2", "9,437,184", NOTHING, "")
    yield Claim(
        "brute force", "chance of a blind guess of the core, sigma = 0.5, at most", core.words("published"),
        core.words("by_formula"), f"{numbers(guess)[0]} guesses: none (best correlation "
        f"{guess['correlation']:.3f})",
        "true, and beside the point: no attack guesses",
    )  # fmt: skip
    order, search = cifar["channel order guess"], attack("channel-search")
    yield Claim(
        "brute force", "chance of guessing the channel order, 1 / 64!", order.words("published"),
        order.words("by_formula"), f"{search['status']} by guessing; "
        f"{attack('channel-fingerprint')['status']} by looking",
        "",
    )  # fmt: skip
    yield Claim(
        "brute force, appendix B", "sigma = 0.5 is 'a very strict requirement'", "0.5", "relative error "
        "0.5",
        if_there("figure-sigma", _sigma_words), "[figure-sigma](experiments.md#figure-sigma): the cat "
        "is plain to see",
    )  # fmt: skip
    for name, what, where in (
        ("reversing unknowns", "unknowns of the reversing attack", "equation 12"),
        ("reversing equations", "equations of it", "before equation 13"),
    ):
        figure = cifar[name]
        yield Claim(
            where, f"{what}, in symbols", NOTHING, figure.words("by_formula"),
            f"{figure.words('counted')} (counted)",
            figure.remark,
        )  # fmt: skip
    reversing = [attack("reversing", kappa=kappa) for kappa in (1, 3)]
    yield Claim(
        "equation 13", "kappa up to which reversing fails, in "
        "symbols", NOTHING, cifar["kappa limit"].words("by_formula"),
        f"reversing {reversing[0]['status']} at kappa 1 and {reversing[1]['status']} at kappa 3",
        "with the channel order found first",
    )  # fmt: skip
    bound = cifar["reversing guess"]
    yield Claim(
        "equation 14", "chance of reversing, CIFAR, at most", bound.words("published"),
        bound.words("by_formula"),
        f"{reversing[0]['status']}: {100 * reversing[0]['reidentified']:.0f} % of 256 images, "
        f"{reversing[0]['psnr']:.0f} dB",
        bound.remark,
    )  # fmt: skip
    bound = imagenet["reversing guess"]
    yield Claim(
        "equation 14", "the same, ImageNet", bound.words("published"), bound.words("by_formula"),
        "not measured: such a layer fills 483 GB", bound.remark,
    )  # fmt: skip
    pairs, known, one = cifar["pairs"], attack("known-pairs"), attack("known-image")
    few = attack("known-pairs", kappa=3)
    yield Claim(
        "equation 15", "pairs for the D-T attack, kappa = 1", pairs.words("published"),
        pairs.words("by_formula"),
        f"{known['status']} with {numbers(known)[0]:,} pairs ({known['psnr']:.0f} dB); with the "
        f"augmented layer one image: {one['status']} "
        f"({one['psnr']:.0f} dB)",
        f"ceil(q / kappa): at kappa = 3 {few['status']} with {numbers(few)[0]:,}, where the paper asks "
        f"for {numbers(few)[-1]:,}",
    )  # fmt: skip


def _sigma_words(read: Row) -> str:
    row = next(one for one in read["rows"] if one["sigma"] == 0.5)
    return (
        f"{row['pixels']['psnr']:.1f} dB from pixels, {row['denoised']['psnr']:.1f} dB after a denoiser, "
        f"{row['normalised']['psnr']:.1f} dB from normalised pixels"
    )


def appendix() -> Iterator[Claim]:
    """The appendix."""
    yield Claim(
        "appendix A", "Lemma 1: a guess within distance d has a chance of at most 1/2 "
        "d^(N-1)", "in symbols", "holds",
        "holds in experiments (`tests/analysis/test_lemma1.py`)",
        "for matrices spread evenly over the sphere; not for elements between 0 and 1",
    )  # fmt: skip
    yield Claim(
        "appendix B", "a core of 2x2 scaled to 6x6", "kappa = 3", "3",
        if_there("figure-diagonal", lambda read: f"{read['kappa']}"),
        "[figure-diagonal](experiments.md#figure-diagonal)",
    )  # fmt: skip
    yield Claim(
        "appendix B", "SSIM lies between 0 and 1", "0 to 1", "-1 to 1", if_there("figure-kappa",
        _kappa_words),
        "the index can be negative; means over four photographs: "
        "[figure-kappa](experiments.md#figure-kappa)",
    )  # fmt: skip
    yield Claim(
        "appendix B", "sigma of the recovered cats", "0.5 among them", NOTHING,
        if_there("figure-sigma", lambda read: f"{read['rows'][0]['sigma']:g} to "
        f"{read['rows'][-1]['sigma']:g}, relative "
                 f"errors {read['rows'][0]['relative_error']:.3f} to "
                 f"{read['rows'][-1]['relative_error']:.3f}"),
        "[figure-sigma](experiments.md#figure-sigma)",
    )  # fmt: skip


def _kappa_words(read: Row) -> str:
    first, last = read["rows"][0], read["rows"][-1]
    return "; ".join(
        f"core {words}: {first[core]['mean']:.2f} at kappa {first['kappa']}, {last[core]['mean']:.2f} "
        f"at {last['kappa']:,}"
        for core, words in (("uniform(0, 1)", "between 0 and 1"), ("orthogonal", "orthogonal"))
    )
