"""From a sample to plain data and back."""

import numpy as np
import pytest
from PIL import Image

from mole.errors import ParameterError, ShapeError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Sample, Source, array_split

IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.fixture
def photo(rng):
    return rng.integers(0, 256, (8, 10, 3), dtype=np.uint8)


def test_images_get_channels_first(photo):
    shaped = Preparation((3, 8, 10)).shape(Sample(photo, "hwc"))
    np.testing.assert_array_equal(shaped, photo.transpose(2, 0, 1))
    np.testing.assert_array_equal(
        Preparation((1, 8, 10)).shape(Sample(photo[..., 0], "hw")), photo[None, ..., 0]
    )
    chw = photo.transpose(2, 0, 1)
    np.testing.assert_array_equal(Preparation((3, 8, 10)).shape(Sample(chw, "chw")), chw)


def test_an_image_as_wide_as_it_has_channels_is_turned_all_the_same(rng):
    tiny = rng.integers(0, 256, (3, 3, 3), dtype=np.uint8)
    np.testing.assert_array_equal(
        Preparation((3, 3, 3)).shape(Sample(tiny, "hwc")), tiny.transpose(2, 0, 1)
    )


def test_the_layer_decides_about_arrays_that_could_be_either(rng):
    array = rng.integers(0, 256, (3, 4, 4), dtype=np.uint8)
    np.testing.assert_array_equal(Preparation((3, 4, 4)).shape(Sample(array, "either")), array)
    turned = array.transpose(2, 0, 1)
    np.testing.assert_array_equal(Preparation((4, 3, 4)).shape(Sample(array, "either")), turned)


@pytest.mark.parametrize("shape", [(7,), (4, 5), (2, 3, 4, 5)])
def test_other_data_passes_as_it_is(rng, shape):
    values = rng.random(shape)
    assert Preparation(shape).shape(Sample(values, "hw" if len(shape) == 2 else "any")) is values


def test_mode_converts_as_pillow_does(photo):
    grey = Preparation((1, 8, 10), mode="L").shape(Sample(photo, "hwc"))
    weighted = photo @ np.array([0.299, 0.587, 0.114])  # ITU-R 601-2
    assert np.abs(grey[0] - weighted).max() <= 1
    colour = Preparation((3, 8, 10), mode="RGB").shape(Sample(photo[..., 0], "hw"))
    np.testing.assert_array_equal(colour, np.stack([photo[..., 0]] * 3))


@pytest.mark.parametrize("channels", [2, 4])
def test_mode_drops_transparency(rng, channels):
    image = rng.integers(0, 256, (8, 10, channels), dtype=np.uint8)
    mode, left = ("L", 1) if channels == 2 else ("RGB", 3)
    shaped = Preparation((left, 8, 10), mode=mode).shape(Sample(image, "hwc"))
    np.testing.assert_array_equal(shaped, image[..., :left].transpose(2, 0, 1))


def test_stretch(photo):
    shaped = Preparation((3, 5, 5), resize="stretch").shape(Sample(photo, "hwc"))
    expected = np.asarray(Image.fromarray(photo).resize((5, 5), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(shaped, expected.transpose(2, 0, 1))


def test_crop_keeps_the_middle(photo):
    shaped = Preparation((3, 8, 6), resize="crop").shape(Sample(photo, "hwc"))
    np.testing.assert_array_equal(shaped, photo[:, 2:8].transpose(2, 0, 1))


@pytest.mark.parametrize("size", [(1, 1), (3, 17), (17, 3), (8, 10), (5, 7)])
@pytest.mark.parametrize("resize", ["crop", "stretch"])
def test_every_size_can_be_reached(photo, size, resize):
    assert Preparation((3, *size), resize=resize).shape(Sample(photo, "hwc")).shape == (3, *size)


def test_a_float_image_that_fits_needs_no_conversion(rng):
    values = rng.random((3, 8, 10))
    prepared = Preparation((3, 8, 10), mode="RGB", resize="crop").shape(Sample(values, "chw"))
    np.testing.assert_array_equal(prepared, values)


HWC, HW = np.zeros((8, 10, 3), np.uint8), np.zeros((8, 10), np.uint8)
REFUSED = {
    "colours": ((1, 8, 10), Sample(HWC, "hwc"), "it is 3x8x10 and the layer takes 1x8x10: give mode=\"L\""),
    "grey": ((3, 8, 10), Sample(HW, "hw"), "it is 1x8x10 and the layer takes 3x8x10: give mode=\"RGB\""),
    "size": ((1, 9, 9), Sample(HW, "hw"), 'takes 1x9x9: give resize="crop" or resize="stretch"'),
    "both": ((1, 9, 9), Sample(HWC, "hwc"), 'give mode="L" and resize="crop" or resize="stretch"'),
    "channels": ((5, 8, 10), Sample(HWC, "hwc"), "takes 5x8x10: give data with as many channels"),
    "axes": ((80,), Sample(HW, "hw"), "it is 1x8x10 and the layer takes 80: give data of that shape"),
    "no image": ((7,), Sample(np.zeros(8), "any"), "it is 8 and the layer takes 7: give data of"),
    "signed": ((1, 8, 10), Sample(HW.astype(np.int64), "hw"), "pixels are int64: give them as unsigned"),
    "nan": ((1, 8, 10), Sample(np.full((8, 10), np.nan), "hw"), "pixels have a NaN"),
    "infinity": ((1, 8, 10), Sample(np.full((8, 10), np.inf), "hw"), "an infinity"),
    "huge": ((1, 8, 10), Sample(np.full((8, 10), 1e300), "hw"), "beyond 32 bits"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_fix(case):
    shape, sample, message = REFUSED[case]
    with pytest.raises(ShapeError) as caught:
        Preparation(shape).shape(sample)
    assert message in str(caught.value)


def test_sixteen_bits_of_grey_stay_sixteen(rng):
    values = rng.integers(0, 1 << 16, (8, 10), dtype=np.uint16)
    in_colour = Preparation((3, 8, 10), mode="RGB").shape(Sample(values, "hw"))
    assert in_colour.dtype == np.uint16
    assert (in_colour == values).all()
    halves = Preparation((1, 4, 5), resize="stretch").shape(Sample(values, "hw"))
    with_pillow = np.asarray(Image.fromarray(values.astype(np.float32)).resize((5, 4), Image.BILINEAR))
    np.testing.assert_array_equal(halves[0], np.rint(with_pillow))
    flat = Preparation((1, 4, 4), resize="crop").shape(Sample(np.full((8, 10), 0xFFFF, np.uint16), "hw"))
    assert (flat == 0xFFFF).all()


def test_only_eight_bits_are_converted():
    deep = Sample(np.zeros((8, 10, 3), np.uint16), "hwc")
    for options in ({"mode": "L"}, {"resize": "crop"}):
        with pytest.raises(ShapeError, match=r"uint16, and only 8-bit images.*: make it 8-bit first"):
            Preparation((3, 9, 9), **options).shape(deep)
    with pytest.raises(ShapeError, match="5 channels, and an image has 1 to 4"):
        Preparation((3, 9, 9), mode="RGB").shape(Sample(np.zeros((5, 8, 8), np.uint8), "chw"))


def test_floats_far_above_one_are_refused_where_pixels_are_expected():
    sample = Sample(np.full((1, 2, 2), 255.0), "chw")
    with pytest.raises(
        ShapeError, match=r"pixels are floats up to 255, far above 1: divide them .*, or give uint8"
    ):
        Preparation((1, 2, 2), Normalisation((0.5,), (0.5,))).shape(sample)
    Preparation((1, 2, 2)).shape(sample)  # without a normalisation they are taken as they are


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "CMYK"},
        {"resize": "zoom"},
        {"input_shape": (784,), "resize": "crop"},
        {"input_shape": (0, 1)},
    ],
)
def test_unusable_options(options):
    with pytest.raises(ParameterError):
        Preparation(**{"input_shape": (3, 8, 8), **options})


EVERY_BYTE = np.stack([np.arange(256, dtype=np.uint8).reshape(16, 16)] * 3)[np.newaxis]


@pytest.mark.parametrize("normalisation", [None, IMAGENET, Normalisation((0, 0.5, 1), (1e-3, 1, 50))])
def test_plain_and_pixels_undo_each_other_for_every_byte(normalisation):
    preparation = Preparation((3, 16, 16), normalisation)
    plain = preparation.plain(EVERY_BYTE)
    assert plain.dtype == np.float32
    np.testing.assert_array_equal(preparation.pixels(plain), EVERY_BYTE)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, ">u2", np.uint32, np.float32, np.float64])
@pytest.mark.parametrize("normalisation", [None, IMAGENET])
def test_plain_is_normalised_from_a_scale_of_0_to_1(rng, dtype, normalisation):
    brightness = rng.random((2, 3, 4, 4))
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    stored = (brightness * top).astype(dtype)
    expected = stored.astype(np.float64) / top
    if normalisation is not None:
        mean, std = (np.reshape(v, (3, 1, 1)) for v in (normalisation.mean, normalisation.std))
        expected = (expected - mean) / std
    plain = Preparation((3, 4, 4), normalisation).plain(stored)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(plain, expected, rtol=1e-5, atol=1e-5)


def test_what_a_layer_asks_for():
    layer = FirstLayer.conv(np.ones((2, 3, 3, 3)), None, input_shape=(3, 8, 8), normalisation=IMAGENET)
    asked = Preparation.for_layer(layer, mode="RGB", resize="crop")
    assert asked == Preparation((3, 8, 8), IMAGENET, mode="RGB", resize="crop")


@pytest.fixture
def split(rng):
    return array_split(rng.integers(0, 256, (10, 8, 8, 3), dtype=np.uint8), None, "photos.npy")


def test_a_sample_that_does_not_fit_is_named_with_what_would_help(split):
    shaped = Preparation((3, 8, 8)).read(split, 4)
    np.testing.assert_array_equal(shaped, split.values[4].transpose(2, 0, 1))
    with pytest.raises(BadSampleError) as caught:
        Preparation((1, 9, 8)).read(split, 4)
    error = caught.value
    assert error.name == "sample 4 of photos.npy"
    assert error.reason == "it is 3x8x8 and the layer takes 1x9x8"
    assert error.advice == {"mode": "L", "resize": ("crop", "stretch")}
    assert str(error) == (
        "sample 4 of photos.npy cannot be used: it is 3x8x8 and the layer takes 1x9x8: "
        'give mode="L" and resize="crop" or resize="stretch"'
    )


@pytest.mark.parametrize(
    ("count", "chosen"), [(1, [0]), (4, [0, 3, 6, 9]), (10, range(10)), (99, range(10))]
)
def test_samples_are_spread_evenly_over_the_main_split(split, rng, count, chosen):
    other = array_split(rng.integers(0, 256, (50, 8, 8, 3), dtype=np.uint8), None, "others.npy")
    source = Source("npy", {"test": other, "train": split}, None, "")
    preparation, steps = Preparation((3, 8, 8), IMAGENET), []
    plain = preparation.samples(source, count, progress=lambda *step: steps.append(step))
    expected = preparation.plain(split.values[list(chosen)].transpose(0, 3, 1, 2))
    assert np.array_equal(plain, expected)
    assert steps == [(done + 1, len(expected)) for done in range(len(expected))]


def test_samples_stop_at_one_that_does_not_fit(split):
    with pytest.raises(BadSampleError, match=r"sample 0 of photos.npy cannot be used"):
        Preparation((1, 8, 8)).samples(Source("npy", {"train": split}, None, ""), 3)
