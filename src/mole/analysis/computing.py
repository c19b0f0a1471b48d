"""What morphing and the augmented layer cost in multiplications (equations 16 and 17).

A MAC is one multiplication with its addition. All counts are for one image.
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
