"""A made-up audit with real small pictures, as large as a real one."""

import numpy as np

from mole.attacks.tools.attack import Attack, Attacker
from mole.attacks.tools.views import OutsiderView
from mole.audit.levels import Level, Status
from mole.audit.paper_figures import (
    kappa_against_ssim,
    photograph,
    sigma_against_recovered,
    with_new_cores,
)
from mole.audit.particulars import Particulars
from mole.audit.pictures import picture, stretched
from mole.audit.report import AttackReport, Cost, Picture, Plot, Report, Verdict
from mole.audit.scoring import Score
from mole.sources.bundled import fashion_mnist

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


def rows(rng: np.random.Generator, *, rebuilt_error: float) -> tuple[tuple[Picture, ...], ...]:
    """Two clothes of Fashion-MNIST: original, morphed, seen, rebuilt."""
    found = []
    for image in fashion_mnist()["x_public"][:2] / 255.0:
        morphed = rng.standard_normal(image.shape)
        edges = np.abs(np.diff(image, axis=0, append=0))
        rebuilt = image + rebuilt_error * rng.standard_normal(image.shape)
        found.append(
            (
                picture("Original", image),
                picture("Morphed", stretched(morphed)),
                picture("What the attacker sees", stretched(edges)),
                picture("What it rebuilds", rebuilt),
            )
        )
    return tuple(found)


def found(name: str, title: str, attacker: Attacker, status: Status, words: str, **more) -> AttackReport:
    advice = more.pop("advice", "Use a whitened core, and a kappa of 1.")
    attack = Attack(
        name,
        title,
        attacker,
        view=OutsiderView,
        run=lambda view, rng: None,
        source=more.pop("source", "this project"),
        advice=advice,
    )
    return AttackReport(attack, status, words, advice=advice, **more)


def made_up_plots() -> tuple[Plot, ...]:
    """The paper's figures, small and quick."""
    rng, photo = np.random.default_rng(7), photograph(48)
    return kappa_against_ssim(with_new_cores(rng), photo, draws=2), sigma_against_recovered(photo, rng)


def made_up_delivery(**changed) -> Particulars:
    """What a delivery would say of itself, with hostile words in it."""
    told = {
        "name": f"clinic-2026-04 {HOSTILE}",
        "delivery_id": "0123456789abcdef0123456789abcdef",
        "key_fingerprint": "6f2c91d04a77be136f2c91d04a77be13",
        "layer_fingerprint": "77be136f2c91d04a77be136f2c91d04a",
        "images": 12_000,
        "shape": "1x28x28",
        "splits": {"train": 10_000, "test": 2_000},
        "labelled": ("train", "test"),
        "classes": ("coat", HOSTILE),
        "columns": (),
        "data_bytes": 9_400_000,
        "all_bytes": 29_100_000,
        "has_layer": True,
        "recipients": 2,
        "signature": "not signed",
    }
    return Particulars(**told | changed)


def made_up_report() -> Report:
    """One of everything: every level, every status, warnings, pictures, costs, and hostile words."""
    rng = np.random.default_rng(7)
    return Report(
        subject={
            "delivery": "clinic-2026-04",
            "rows": 12000,
            "sample": "1 x 28 x 28",
            "core": "orthogonal",
            "kappa": 1,
            "key": "6f2c 91d0 4a77 be13",
            "first layer": "16 channels, 3 x 3",
            "classes": f"coat, {HOSTILE}",
        },
        warnings=(
            "Only 200 public images were given: attacks that learn from public images are weaker here than "
            "they could be.",
            f"One file was skipped: {HOSTILE}.png",
        ),
        verdicts=(
            Verdict(
                Attacker.OUTSIDER,
                Level.LEAKS,
                "cannot recognise images, but reads off their brightness and which ones are alike",
                "Morph with a whitened core.",
            ),
            Verdict(
                Attacker.THIEF,
                Level.NOTHING_FOUND,
                "found nothing in 40 seconds of trying",
                "",
            ),
            Verdict(
                Attacker.DEVELOPER,
                Level.BROKEN,
                "recovers every image, in 12 seconds",
                "Deliver only to developers who are bound by contract, or add noise before morphing.",
            ),
            Verdict(
                Attacker.INJECTOR,
                Level.UNKNOWN,
                "was not tested: no known images were given",
                "Let it know some.",
            ),
        ),
        attacks=(
            found(
                "pca",
                "Matching principal components",
                Attacker.OUTSIDER,
                Status.PARTLY,
                "The leading components of the morphed data were matched by size with those of public "
                "images. Seven of the first ten could be read off for every image.",
                seconds=3.4,
                pictures=rows(rng, rebuilt_error=0.35)[:1],
                score=Score(
                    components=tuple(np.linspace(0.98, 0.2, 12)),
                    correlation=0.41,
                    reidentified=0.25,
                    among=64,
                ),
                facts={"public images": 200, "explained": 0.8312345, "signs by": "skewness"},
            ),
            found(
                "linkage",
                "Linking similar images",
                Attacker.OUTSIDER,
                Status.SUCCEEDED,
                "Distances between morphed images were compared. An orthogonal core does not change them.",
                seconds=0.2,
                score=Score(neighbours=1.0, distance_correlation=0.9999),
            ),
            found(
                "ica",
                "Independent components",
                Attacker.OUTSIDER,
                Status.NOT_TRIED,
                "The time was used up before it came to this.",
            ),
            found(
                "row-space",
                "Unknown kernels from the row space",
                Attacker.THIEF,
                Status.FAILED,
                "Kernels that fit were searched, and none was found.",
                seconds=40.1,
                score=Score(psnr=7.1, ssim=0.02, correlation=0.01, reidentified=1 / 64, among=64),
                pictures=rows(rng, rebuilt_error=3.0)[:1],
                published="a chance of 7.9e-90 for a guess",
            ),
            found(
                "channel-fingerprint",
                "Channel fingerprint and deconvolution",
                Attacker.DEVELOPER,
                Status.SUCCEEDED,
                "The channel order was read off the channels' leverages. Undoing the first layer then "
                "gives every number of each image.",
                source="this project: the published bound of 1 / beta! counts guesses, and none is needed",
                advice="No key and no kappa helps. Lose information before the data leaves: add noise, or "
                "agree on a first layer with fewer features than pixels.",
                published="a chance of 4.8e-14 (1 / 16!) for guessing the order of 16 channels",
                seconds=12.3,
                score=Score(
                    psnr=83.8,
                    ssim=0.99996,
                    correlation=1.0,
                    rmse=1.6e-05,
                    reidentified=1.0,
                    among=64,
                    channels=1.0,
                ),
                facts={"order found by": "leverages", "margin": 21.5, "numbers pinned down": 784},
                pictures=rows(rng, rebuilt_error=0.002),
            ),
            found(
                "order",
                f"Order of classes {HOSTILE}",
                Attacker.DEVELOPER,
                Status.NOT_APPLICABLE,
                "16 channels have 2.1e13 orders: too many to try them all.",
            ),
            found(
                "one-image",
                "One known image",
                Attacker.INJECTOR,
                Status.NOT_APPLICABLE,
                "No known images were given.",
                published="3,072 pairs are needed",
            ),
        ),
        costs=(
            Cost("Provider, multiplications per image", "614,656", "614,656", "0.4 ms", ""),
            Cost(
                "Developer, added to a training step",
                "9 %",
                "21 %",
                "32 %",
                "the printed figure does not follow from its formula",
            ),
            Cost(
                "Augmented layer, share of the data",
                "5.12 %",
                "109 %",
                None,
                "the formula leaves out the number of channels",
            ),
        ),
        version="0.3.0",
        headline="Treat this delivery like the images: its receiver can get them back.",
        delivery=made_up_delivery(),
        date="2026-04-01",
        by=f"A. Officer {HOSTILE}",
        receiver="Model Makers Ltd",
    )
