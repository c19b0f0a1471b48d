"""What has to be sent: the augmented layer, and the morphed images ('Data transmission overhead')."""

from mole.analysis.sizes import check_positive


def published_layer_elements(*, input_elements: int) -> int:
    """Elements of the augmented layer as the paper has them: (alpha m^2)^2 (after equation 17).

    That is the size of M^-1, not of M^-1 C. Over CIFAR's 60,000 images it gives the paper's 5.12 %:

    >>> elements = published_layer_elements(input_elements=3072)
    >>> elements
    9437184
    >>> f"{share_of_data(layer_elements=elements, input_elements=3072, images=60_000):.2%}"
    '5.12%'

    For ImageNet the paper says about 1 %; over the 1.28 million images of ImageNet-1k this formula gives

    >>> elements = published_layer_elements(input_elements=3 * 224**2)
    >>> f"{share_of_data(layer_elements=elements, input_elements=3 * 224**2, images=1_281_167):.2%}"
    '11.75%'

    and 1 % is right for the whole ImageNet of 14 million:

    >>> f"{share_of_data(layer_elements=elements, input_elements=3 * 224**2, images=14_197_122):.2%}"
    '1.06%'
    """
    check_positive(input_elements=input_elements)
    return input_elements**2


def counted_layer_elements(*, input_elements: int, output_elements: int) -> int:
    """Elements of the augmented layer: alpha m^2 x beta n^2, 21 times as many at CIFAR size.

    >>> elements = counted_layer_elements(input_elements=3072, output_elements=65536)
    >>> elements
    201326592
    >>> f"{share_of_data(layer_elements=elements, input_elements=3072, images=60_000):.0%}"
    '109%'
    """
    check_positive(input_elements=input_elements, output_elements=output_elements)
    return input_elements * output_elements


def share_of_data(*, layer_elements: int, input_elements: int, images: int) -> float:
    """Elements of the augmented layer over those of all images: the paper's O_data as a share.

    >>> share_of_data(layer_elements=6, input_elements=3, images=4)
    0.5
    """
    check_positive(layer_elements=layer_elements, input_elements=input_elements, images=images)
    return layer_elements / (input_elements * images)


def sent_bytes(
    *, layer_elements: int, input_elements: int, images: int, bytes_per_value: int, bytes_per_weight: int
) -> int:
    """Bytes of the morphed images and the augmented layer together, without labels and headers.

    CIFAR as 32-bit numbers, whose 8-bit images have 184 MB, and as 8-bit values with a 16-bit layer:

    >>> sent_bytes(layer_elements=201_326_592, input_elements=3072, images=60_000,
    ...            bytes_per_value=4, bytes_per_weight=4)
    1542586368
    >>> sent_bytes(layer_elements=201_326_592, input_elements=3072, images=60_000,
    ...            bytes_per_value=1, bytes_per_weight=2)
    586973184
    """
    check_positive(layer_elements=layer_elements, input_elements=input_elements, images=images)
    check_positive(bytes_per_value=bytes_per_value, bytes_per_weight=bytes_per_weight)
    return images * input_elements * bytes_per_value + layer_elements * bytes_per_weight
