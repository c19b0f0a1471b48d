"""The paper's claims about overhead, and its Table 1: each with what was measured."""

from collections.abc import Iterator

from paper_results import (
    NOTHING,
    Claim,
    attack,
    figures,
    if_there,
    needed,
    network,
)
from table1_words import features_attacked, features_bytes, features_errors, features_macs, mole_penalty


def overhead() -> Iterator[Claim]:
    """The overhead analysis, and Table 1."""
    cifar, imagenet = figures("cifar-vgg16"), figures("imagenet-resnet152")
    rows = needed("peers")["results"]["rows"]
    morph = next(one for one in needed("morph")["kappas"] if one["kappa"] == 1)
    provider, developer, layer = (
        cifar[name] for name in ("provider macs", "developer macs", "layer elements")
    )
    yield Claim(
        "equation 16", "provider's multiplications for an image, in "
        "symbols", NOTHING, provider.words("by_formula"),
        f"{morph['multiplications_per_sample']:,}, {morph['images_per_s']:,} images/s", provider.remark,
    )  # fmt: skip
    yield Claim(
        "equation 17", "developer's additional multiplications, in "
        "symbols", NOTHING, developer.words("by_formula"),
        f"first layer {1000 * rows['developer_s']:.1f} ms against {1000 * rows['plain_s']:.2f} ms "
        f"plain, one thread", "",
    )  # fmt: skip
    resnet = imagenet["inference share"]
    tiles = network("ResNet-50", "forward", "tiles of 8")
    yield Claim(
        "overhead", "computational overhead, ResNet-152 on ImageNet", resnet.words("published"),
        resnet.words("by_formula"),
        f"not in blocks of rows, whose layer fills 483 GB; ResNet-50 in tiles of 8: {tiles:.2f} times "
        f"plain",
        "published and formula agree",
    )  # fmt: skip
    yield Claim(
        "overhead", "elements of C^ac, (alpha m^2)^2, in symbols", NOTHING, layer.words("by_formula"),
        f"{rows['bytes_of_layer_once'] // 4:,}", layer.remark,
    )  # fmt: skip
    data = imagenet["data share"]
    yield Claim(
        "overhead", "transmission overhead, ImageNet", "about 1 %", data.words("by_formula"),
        f"{data.words('counted')} (counted)", data.remark,
    )  # fmt: skip
    yield Claim(
        "Table 1",
        "MoLe: performance penalty",
        "0",
        NOTHING,
        if_there("table1", mole_penalty),
        "see also Table 2",
    )
    share, sent = (cifar[name].words("by_formula") for name in ("inference share", "data share"))
    yield Claim("Table 1", "MoLe: transmission", "0.05 times", sent, "see the abstract", "")
    yield Claim("Table 1", "MoLe: computing", "0.09 times", share, "see the abstract", "")
    found = attack("channel-fingerprint")
    yield Claim(
        "Table 1", "MoLe: attack success probability", "7.9e-90", "7.9e-90",
        f"{100 * found['reidentified']:.0f} % of 256 images, by the developer", "",
    )  # fmt: skip
    peers = [needed("peers")["results"][name] for name in ("tenseal", "crypten")]
    yield Claim(
        "Table 1", "SMC: performance penalty", "0", NOTHING,
        f"features differ by {peers[0]['error']:.0e} (TenSEAL), {peers[1]['error']:.0e} "
        f"(CrypTen)", "of the first layer",
    )  # fmt: skip
    yield Claim("Table 1", "SMC: transmission", "421,000 times", NOTHING, "see the abstract", "")
    yield Claim("Table 1", "SMC: computing", "10,000 times", NOTHING, "see the abstract", "")
    yield Claim(
        "Table 1", "SMC: attack success probability", "2.9e-39", cifar["gazelle guess"].words("counted"),
        "not attacked", "the abstract has 2.9e-30",
    )  # fmt: skip
    yield Claim(
        "Table 1",
        "features: higher error rate",
        "0.628 times",
        NOTHING,
        if_there("table1", features_errors),
        "",
    )
    features = cifar["features share"]
    yield Claim(
        "Table 1", "features: transmission", features.words("published"), features.words("counted"),
        if_there("table1", features_bytes), features.remark,
    )  # fmt: skip
    yield Claim(
        "Table 1", "features: computing", "0", NOTHING, if_there("table1", features_macs),
        "the developer computes nothing more, but the provider runs the first layer",
    )  # fmt: skip
    yield Claim(
        "Table 1", "features: attack success probability", "not reported", NOTHING, if_there("table1",
        features_attacked),
        "",
    )  # fmt: skip
