"""What the playground shows is what the library gives: for every choice, with oracles of their own."""

import base64
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from mole.errors import ParameterError, SourceError
from mole.playground import answers
from mole.playground.choices import BITS, MorphingChoice, parse_bits, sizes
from mole.playground.morphing_trial import TRIED, MorphingTrial
from mole.playground.noise_trial import CANDIDATES, FEATURES, NoiseTrial, certificate_of
from mole.playground.stock import CLOTHING, LOOKS, MOST_UPLOADS, PHOTO, SIDE, Stock, first_layer
from mole.provider.keys.key import unmorph
from mole.scheme.convolution import features_of
from mole.scheme.morphing import CORE_KINDS
from mole.storage.typed_json import Fields, FormatError

SHAPE = LOOKS[CLOTHING][0]
EVERY_SIZE = [(layout, size) for layout, several in sizes(SHAPE).items() for size in several]


@pytest.fixture(scope="module")
def stock() -> Stock:
    return Stock()


@pytest.fixture(scope="module")
def boot(stock):
    return stock.get("ankle-boot")


def pixels_of(shown: dict) -> np.ndarray:
    """A picture of an answer, between 0 and 1."""
    kind, _, content = shown["src"].partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))) / 255.0


def psnr_of(one: np.ndarray, other: np.ndarray) -> float:
    return float(-10 * np.log10(np.square(one - other).mean()))


def file_of(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("core", CORE_KINDS)
@pytest.mark.parametrize(("layout", "size"), EVERY_SIZE)
def test_every_choice_morphs_and_gives_the_layers_features(boot, layout, size, core):
    trial = MorphingTrial.of(boot, MorphingChoice(CLOTHING, layout, size, core))
    key, layer = trial.made.key, first_layer(CLOTHING)
    assert (key.kappa, key.core) == (size if layout == "rows" else (28 // size) ** 2, core)
    assert abs(np.corrcoef(trial.morphed.ravel(), boot.plain.ravel())[0, 1]) < 0.5
    np.testing.assert_allclose(unmorph(trial.morphed, key), boot.plain, atol=1e-2)
    wanted = features_of(layer, boot.plain)[:, key.channel_order(16)]
    np.testing.assert_allclose(trial.made.augmented.features(trial.morphed), wanted, atol=1e-2)


def test_what_is_shown_of_a_picture_is_what_there_is(boot):
    trial = MorphingTrial.of(boot, MorphingChoice(CLOTHING, "rows", 4, "orthogonal"))
    told = answers.look(trial)
    pixels = LOOKS[CLOTHING][1].undo(boot.plain)[0, 0]
    assert np.abs(pixels_of(told["plain"]) - pixels).max() < 1 / 255
    maps = trial.made.augmented.features(trial.morphed)[0]
    assert pixels_of(told["maps"]).shape == (4 * 28 + 3, 4 * 28 + 3)
    correlations = [abs(np.corrcoef(one.ravel(), pixels.ravel())[0, 1]) for one in maps]
    assert told["best_map"] == pytest.approx(max(correlations), abs=1e-3)
    unseen = LOOKS[CLOTHING][1].undo(trial.made.kind.public).mean(axis=0)[0]
    assert told["mean"]["psnr"] == pytest.approx(psnr_of(pixels, unseen), abs=0.01)


@pytest.mark.parametrize(("layout", "size"), [("rows", 1), ("rows", 4), ("tiles", 7)])
def test_the_costs_are_those_that_counting_gives(boot, layout, size):
    trial = MorphingTrial.of(boot, MorphingChoice(CLOTHING, layout, size, "orthogonal"))
    told = {one["what"]: one for one in answers.costs(trial)}
    kappa = size if layout == "rows" else (28 // size) ** 2
    side = 784 // kappa
    assert told["Secret core"]["value"] == f"{side:,} x {side:,}"
    assert told["Provider, for a picture"]["value"] == f"{kappa * side**2:,}"
    assert told["Known pictures that give the core"]["value"] == f"{math.ceil(side / kappa):,}"
    assert "112,896 without morphing" in told["Developer, first layer"]["remark"]  # 16 x 28 x 28 x 9
    if layout == "rows":
        assert told["Developer, first layer"]["value"] == f"{784 * 16 * 784:,}"
    else:  # a convolution of 3 x 3 tiles, over 16 tiles
        assert told["Developer, first layer"]["value"] == f"{9 * side * 16 * side * 16:,}"
        assert told["Augmented layer"]["value"] == "1.4 MB"


def test_what_attackers_get_has_the_scores_of_the_pictures_shown(boot):
    """PSNR by hand, from the pictures themselves: 8 bits hide what lies beyond 50 dB."""
    trial = MorphingTrial.of(boot, MorphingChoice(CLOTHING, "rows", 1, "orthogonal"))
    original = pixels_of(answers.look(trial)["plain"])
    told = {attacker: answers.attacked(trial, attacker) for attacker in TRIED}
    assert told["stranger"]["psnr"] == pytest.approx(
        psnr_of(original, pixels_of(told["stranger"])), abs=0.1
    )
    assert [told[name]["verdict"] for name in TRIED] == ["a rough idea", *["a good copy"] * 3]
    for name in ("finder", "developer", "injector"):
        assert told[name]["ssim"] > 0.9999
        assert np.abs(pixels_of(told[name]) - original).max() <= 1.5 / 255


def test_a_whitened_core_hides_statistics_from_the_stranger_and_nothing_from_the_developer(boot):
    trial = MorphingTrial.of(boot, MorphingChoice(CLOTHING, "rows", 1, "whitened"))
    assert answers.attacked(trial, "stranger")["verdict"] == "next to nothing"
    assert answers.attacked(trial, "developer")["verdict"] == "a good copy"


def test_an_attack_that_cannot_be_tried_says_why(boot):
    trial = MorphingTrial.of(boot, MorphingChoice(CLOTHING, "rows", 4, "orthogonal"))
    few = replace(trial.made.kind, public=trial.made.kind.public[:10])
    told = answers.attacked(replace(trial, made=replace(trial.made, kind=few)), "stranger")
    assert told["words"].startswith("10 public images are too few")
    assert (told["level"], told["verdict"], "src" in told) == ("none", "not tried", False)


def test_another_draw_is_another_key_and_the_same_draw_the_same(boot):
    one, again, other = (
        MorphingTrial.of(boot, MorphingChoice(CLOTHING, "rows", 16, "orthogonal", draw))
        for draw in (0, 0, 1)
    )
    assert one.made.key.fingerprint == again.made.key.fingerprint != other.made.key.fingerprint
    assert np.abs(one.morphed - other.morphed).max() > 0.1


@pytest.mark.parametrize("bits", BITS)
def test_every_amount_of_noise_keeps_to_its_certificate(boot, bits):
    trial = NoiseTrial.of(boot, bits)
    gaussian = 1 / math.sqrt(FEATURES * (2 ** (2 * bits / FEATURES) - 1))
    told = answers.protected(boot.name, trial)
    assert told["bits"] == pytest.approx(bits)
    assert 0.95 * gaussian < told["sigma"] <= gaussian * (1 + 1e-12)  # limited noise may be a little less
    assert (certificate_of(bits).limit is None) == (bits > 200)
    assert told["picked"]["most"] == certificate_of(bits).identification(CANDIDATES)
    spread = 3.3 * math.sqrt(max(told["picked"]["most"], 0.001) / CANDIDATES)
    assert told["picked"]["share"] <= told["picked"]["most"] + spread
    original = LOOKS[CLOTHING][1].undo(boot.plain)[0, 0]
    assert told["rebuilt"]["psnr"] == pytest.approx(psnr_of(original, pixels_of(told["rebuilt"])), abs=0.1)
    if bits <= 1:
        assert told["picked"]["share"] < 0.1
        assert told["rebuilt"]["psnr"] < told["mean"]["psnr"] + 6
    if bits >= 256:
        assert told["picked"]["right"]
        assert told["picked"]["share"] > 0.9
        assert told["rebuilt"]["psnr"] > told["mean"]["psnr"] + 3


@pytest.mark.fresh_draws
def test_noise_is_drawn_anew_each_time(boot):
    assert not np.array_equal(NoiseTrial.of(boot, 1.0).row, NoiseTrial.of(boot, 1.0).row)


GOOD = {"layout": "rows", "size": 4, "core": "orthogonal", "draw": 0}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"layout": "shuffled-tiles"}, "layout can be rows or tiles here"),
        ({"size": 5}, "kappa can be 1, 2, 4, 7, 8, 14, 16, 28 or 49 here"),
        ({"layout": "tiles"}, None),
        ({"layout": "tiles", "size": 2}, "tile can be 4, 7 or 14 here"),
        ({"core": "identity"}, "core can be orthogonal, whitened or gaussian here"),
        ({"draw": -1}, "its field 'draw' is not a whole number"),
        ({"draw": 1 << 40}, "its field 'draw' is not a whole number"),
        ({"size": "4"}, "its field 'size' is not a whole number"),
        ({"size": True}, "its field 'size' is not a whole number"),
        ({"core": None}, "its field 'core' is not text"),
    ],
)
def test_only_what_is_offered_can_be_chosen(change, error):
    fields = Fields({**GOOD, **change})
    if error is None:
        assert MorphingChoice.parse(fields, CLOTHING, SHAPE).tile == 4
        return
    with pytest.raises((ParameterError, FormatError)) as caught:
        MorphingChoice.parse(fields, CLOTHING, SHAPE)
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize("bits", [0, -1, 3.0, 1e300, "1", None])
def test_only_bits_that_are_offered_can_be_chosen(bits):
    with pytest.raises((ParameterError, FormatError)):
        parse_bits(Fields({"bits": bits}))


def test_a_picture_is_cut_to_its_middle_and_turned_upright(stock, rng):
    wide = np.zeros((30, 90, 3), np.uint8)
    wide[:, 30:60] = (250, 120, 10)
    for kind in ("PNG", "BMP", "TIFF", "WEBP", "JPEG"):
        name = stock.add(file_of(wide, kind))
        found = LOOKS[PHOTO][1].undo(stock.get(name).plain)[0]
        assert found.shape == (3, SIDE, SIDE)
        np.testing.assert_allclose(found[:, SIDE // 2, SIDE // 2] * 255, (250, 120, 10), atol=4)
    grey = stock.add(file_of(rng.integers(0, 256, (40, 40)).astype(np.uint8)))
    assert np.ptp(LOOKS[PHOTO][1].undo(stock.get(grey).plain)[0], axis=0).max() < 1e-5
    sideways = io.BytesIO()
    flag = np.zeros((48, 48, 3), np.uint8)
    flag[:24] = 255
    turned = Image.fromarray(flag)
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera lay on its side
    turned.save(sideways, "JPEG", exif=exif)
    found = LOOKS[PHOTO][1].undo(stock.get(stock.add(sideways.getvalue())).plain)[0]
    assert found[:, :, -4:].mean() > 0.9
    assert found[:, :, :4].mean() < 0.1


def test_old_uploads_are_forgotten(stock):
    names = [stock.add(file_of(np.full((8, 8), shade, np.uint8))) for shade in range(MOST_UPLOADS + 1)]
    with pytest.raises(SourceError, match="is not here any more"):
        stock.get(names[0])
    assert all(stock.get(name) for name in names[1:])
