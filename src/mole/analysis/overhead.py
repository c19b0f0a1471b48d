"""What morphing and the augmented layer cost: in multiplications (equations 16 and 17), and in bytes.

A MAC is one multiplication with its addition; MACs are counted for one image.
"""

from mole.analysis.sizes import check_positive, core_side

PASSES_OF_A_TRAINING_STEP = 3  # forward, gradients of weights, gradients of features: about equal


def published_provider_macs(*, input_channels: int, input_elements: int, kappa: int) -> int:
    """The provider's MACs as the paper has them: alpha q^2 (equation 16).

    >>> published_provider_macs(input_channels=3, input_elements=3072, kappa=1)
    28311552

    This, over the 313 million of VGG-16, is the 9 % that the paper gives as its overhead:

    >>> f"{share_of_inference(extra_macs=28_311_552, network_macs=313_725_952):.0%}"
    '9%'
    """
    check_positive(input_channels=input_channels)
    return int(input_channels * core_side(input_elements=input_elements, kappa=kappa) ** 2)


def counted_provider_macs(*, input_elements: int, kappa: int) -> int:
    """The provider's MACs: kappa q^2, the elements of M that are not zero.

    >>> counted_provider_macs(input_elements=3072, kappa=1)
    9437184

    Both agree where kappa is the number of channels:

    >>> counted_provider_macs(input_elements=3072, kappa=3)
    3145728
    >>> published_provider_macs(input_channels=3, input_elements=3072, kappa=3)
    3145728
    """
    return int(kappa * core_side(input_elements=input_elements, kappa=kappa) ** 2)


def first_layer_macs(*, output_elements: int, kernel_elements: int) -> int:
    """MACs of the plain first layer, alpha p^2 beta n^2; zeros of the padding count, as is usual.

    >>> first_layer_macs(output_elements=65536, kernel_elements=27)
    1769472
    """
    check_positive(output_elements=output_elements, kernel_elements=kernel_elements)
    return output_elements * kernel_elements


def augmented_layer_macs(*, input_elements: int, output_elements: int) -> int:
    """MACs of the augmented layer, alpha m^2 beta n^2: each of its elements once.

    >>> augmented_layer_macs(input_elements=3072, output_elements=65536)
    201326592
    """
    check_positive(input_elements=input_elements, output_elements=output_elements)
    return input_elements * output_elements


def developer_extra_macs(*, input_elements: int, output_elements: int, kernel_elements: int) -> int:
    """MACs that the augmented layer adds to a network: (m^2 - p^2) alpha beta n^2 (equation 17).

    For ResNet-152 at ImageNet size the paper's figure is 10 times the network:

    >>> extra = developer_extra_macs(input_elements=3 * 224**2, output_elements=64 * 112**2,
    ...                              kernel_elements=3 * 7**2)
    >>> extra
    120728272896
    >>> f"{share_of_inference(extra_macs=extra, network_macs=11_513_626_624):.1f} times"
    '10.5 times'

    For VGG-16 at CIFAR size it is 9 %, and equation 17 gives 64 % of inference, 21 % of training:

    >>> extra = developer_extra_macs(input_elements=3072, output_elements=65536, kernel_elements=27)
    >>> extra
    199557120
    >>> f"{share_of_inference(extra_macs=extra, network_macs=313_725_952):.0%}"
    '64%'
    >>> f"{share_of_training_step(extra_macs=extra, network_macs=313_725_952):.0%}"
    '21%'
    """
    augmented = augmented_layer_macs(input_elements=input_elements, output_elements=output_elements)
    return augmented - first_layer_macs(output_elements=output_elements, kernel_elements=kernel_elements)


def tiles_extra_macs(*, layer_macs: int, output_elements: int, kernel_elements: int) -> int:
    """MACs that an augmented layer in tiles adds to a network. Not in the paper.

    For ResNet's first layer at ImageNet size, in tiles of 8, a hundredth of what blocks of rows add:

    >>> tiles_extra_macs(layer_macs=1_387_266_048, output_elements=64 * 112**2, kernel_elements=3 * 7**2)
    1269252096
    """
    return layer_macs - first_layer_macs(output_elements=output_elements, kernel_elements=kernel_elements)


def share_of_inference(*, extra_macs: int, network_macs: int) -> float:
    """Extra MACs over those of the network's forward pass.

    >>> share_of_inference(extra_macs=50, network_macs=100)
    0.5
    """
    check_positive(network_macs=network_macs)
    return extra_macs / network_macs


def share_of_training_step(*, extra_macs: int, network_macs: int) -> float:
    """Extra MACs over those of a training step, taken as three forward passes.

    The augmented layer is frozen and the first to see the data, so it has a forward pass only.

    >>> share_of_training_step(extra_macs=75, network_macs=100)
    0.25
    """
    return share_of_inference(extra_macs=extra_macs, network_macs=network_macs) / PASSES_OF_A_TRAINING_STEP


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
