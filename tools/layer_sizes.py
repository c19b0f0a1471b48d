"""What the augmented layer of a convolution weighs, as the README's table: `python tools/layer_sizes.py`.

In float32, in two factors where these have fewer numbers than the matrix; float16 takes half.
"""

from mole.analysis.sizes import LayerSizes
from mole.quantities import size_text
from mole.scheme.shapes import Shape, shape_text

SHAPES: tuple[Shape, ...] = ((1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 128, 128), (3, 224, 224))
CHANNELS, STRIDES = (16, 64), (1, 2)
BYTES_PER_NUMBER = 4


def layer_bytes(shape: Shape, channels: int, stride: int) -> int:
    """Bytes of the augmented layer of a 3x3 convolution with padding 1.

    >>> layer_bytes((3, 32, 32), 64, 1)
    346816512
    """
    sizes = LayerSizes.conv(input_shape=shape, channels=channels, kernel=3, stride=stride, padding=1)
    return BYTES_PER_NUMBER * sizes.stored_numbers


def table() -> str:
    """The table, in Markdown."""
    columns = [(channels, stride) for stride in STRIDES for channels in CHANNELS]
    heads = [f"{channels} channels" + f", stride {stride}" * (stride > 1) for channels, stride in columns]
    lines = [f"| images | {' | '.join(heads)} |", "|---" * (1 + len(columns)) + "|"]
    for shape in SHAPES:
        cells = [size_text(layer_bytes(shape, *column)) for column in columns]
        lines.append(f"| {shape_text(shape)} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
