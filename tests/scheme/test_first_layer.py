import numpy as np
import pytest

from mole import FirstLayer, Normalisation
from mole.errors import MoleError, UnsupportedLayerError

WEIGHT = np.ones((4, 3, 3, 3))


def test_numbers_stand_for_every_axis():
    layer = FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 9), stride=2, padding=(1, 2), dilation=1)
    assert layer.stride == (2, 2)
    assert layer.padding == ((1, 1), (2, 2))
    assert layer.output_shape == (4, 4, 6)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"input_shape": (4, 8, 8)}, "3 input channels and a sample has 4"),
        ({"input_shape": (3, 8)}, "should have 3 numbers"),
        ({"input_shape": (3, 2, 2)}, "larger than its padded input"),
        ({"stride": 0}, "at least 1"),
        ({"stride": (1, 1, 1)}, "2 numbers each"),
        ({"padding": -1}, "negative"),
        ({"groups": 3, "input_shape": (9, 8, 8)}, "3 groups do not divide 4"),
        ({"groups": 0}, "0 groups"),
        ({"bias": np.ones(5)}, r"not \(4,\)"),
        ({"bias": np.full(4, np.nan)}, "bias has a NaN"),
        ({"weight": np.full((4, 3, 3, 3), np.inf)}, "weight has a NaN or an infinity"),
        ({"weight": np.ones((4, 3, 3, 3), dtype=np.int8)}, "int8"),
        ({"weight": np.ones((4, 3, 3, 3, 3, 3))}, "not that of a Linear"),
        ({"weight": np.ones((0, 3, 3, 3))}, "not that of a Linear"),
        ({"stride": 1.5}, "whole numbers"),
        ({"stride": None}, "whole numbers"),
        ({"padding": "same"}, "whole numbers"),
        ({"padding": ((1, 2, 3), (1, 2, 3))}, "whole numbers"),
        ({"groups": None}, "whole numbers"),
        ({"bias": [None] * 4}, "bias is object"),
        ({"padding": 10**9, "stride": 10**9}, "too large"),
        ({"normalisation": Normalisation((0.5,), (0.5,))}, "normalisation has 1 channels"),
    ],
)
def test_an_unusable_convolution_is_refused_with_its_reason(changes, reason):
    arguments = {"weight": WEIGHT, "bias": None, "input_shape": (3, 8, 8), **changes}
    weight, bias = arguments.pop("weight"), arguments.pop("bias")
    with pytest.raises(UnsupportedLayerError, match=reason):
        FirstLayer.conv(weight, bias, **arguments)


def test_numbers_and_lists_of_any_kind_are_taken():
    layer = FirstLayer.conv(WEIGHT.tolist(), [0.0] * 4, input_shape=[3, 8, 8], stride=np.int64(2))
    assert layer.stride == (2, 2)
    assert layer.output_shape == (4, 3, 3)


def test_plain_data_comes_from_images_with_or_without_a_normalisation():
    images = np.full((2, 3, 8, 8), 255, dtype=np.uint8)
    layer = FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 8))
    assert np.allclose(layer.plain(images), 1)
    shifted = Normalisation((0.5,) * 3, (0.5,) * 3)
    layer = FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 8), normalisation=shifted)
    assert np.allclose(layer.plain(images), 1)
    assert np.allclose(layer.plain(0 * images), -1)


def test_the_fingerprint_follows_every_number():
    layers = [
        FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 8)),
        FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 9)),
        FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 8), padding=1),
        FirstLayer.conv(WEIGHT, np.zeros(4), input_shape=(3, 8, 8)),
        FirstLayer.conv(np.nextafter(WEIGHT, 2), None, input_shape=(3, 8, 8)),
    ]
    assert len({layer.fingerprint for layer in layers}) == 5
    assert layers[0].fingerprint == FirstLayer.conv(WEIGHT, None, input_shape=(3, 8, 8)).fingerprint


def test_all_reasons_come_at_once():
    with pytest.raises(UnsupportedLayerError) as caught:
        FirstLayer.conv(WEIGHT, np.ones(5), input_shape=(4, 8, 8), stride=0)
    assert len(caught.value.reasons) == 3


def test_a_linear_layer_must_take_the_whole_sample():
    with pytest.raises(UnsupportedLayerError, match=r"takes 10 elements and a sample .* has 12"):
        FirstLayer.linear(np.ones((5, 10)), None, input_shape=(3, 4))
    with pytest.raises(MoleError, match=r"no groups; .*no stride"):
        FirstLayer(np.ones((5, 12)), None, (3, 4), (1,), (), (), groups=2)


def test_groups_are_written_out_as_zeros():
    layer = FirstLayer.conv(np.ones((4, 1, 1)), None, input_shape=(2, 5), groups=2)
    assert layer.ungrouped_weight[:, :, 0].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
