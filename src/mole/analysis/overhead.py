"""The figures of the overhead analysis, for a setting."""

from mole.analysis import computing, transmission
from mole.analysis.figure import Figure
from mole.analysis.setting import Setting


def overhead_figures(setting: Setting) -> list[Figure]:
    """What the provider and the developer compute, and what is sent."""
    return [*_computing(setting), *_transmission(setting)]


def _computing(setting: Setting) -> list[Figure]:
    layer, kappa = setting.layer, setting.kappa
    published = computing.published_provider_macs(
        input_channels=layer.input_channels, input_elements=layer.input_elements, kappa=kappa
    )
    counted = computing.counted_provider_macs(input_elements=layer.input_elements, kappa=kappa)
    extra = computing.developer_extra_macs(
        input_elements=layer.input_elements, output_elements=layer.output_elements,
        kernel_elements=layer.kernel_elements,
    )  # fmt: skip
    figures = [
        Figure(
            name="provider macs", what="provider's multiplications for an image",
            unit="count", equation="16", by_formula=published, counted=counted,
            remark="alpha q^2 in the paper; the core stands kappa times on the diagonal, so kappa q^2",
        ),
        Figure(
            name="developer macs", what="developer's additional multiplications for an image",
            unit="count", equation="17", by_formula=extra, counted=extra,
        ),
    ]  # fmt: skip
    if setting.network_macs is None:
        return figures
    macs = setting.network_macs
    inference = computing.share_of_inference(extra_macs=extra, network_macs=macs)
    return [
        *figures,
        Figure(
            name="provider share", what="provider's multiplications over the network's", unit="share",
            equation="16",
            by_formula=computing.share_of_inference(extra_macs=published, network_macs=macs),
            counted=computing.share_of_inference(extra_macs=counted, network_macs=macs),
        ),
        Figure(
            name="inference share", what="developer's additional cost of inference", unit="share",
            equation="17", by_formula=inference, counted=inference,
        ),
        Figure(
            name="training share", what="developer's additional cost of training", unit="share",
            counted=computing.share_of_training_step(extra_macs=extra, network_macs=macs),
            remark="the layer is frozen: a forward pass more in a step of about three",
        ),
    ]  # fmt: skip


def _transmission(setting: Setting) -> list[Figure]:
    layer, images = setting.layer, setting.images
    published = transmission.published_layer_elements(input_elements=layer.input_elements)
    counted = transmission.counted_layer_elements(
        input_elements=layer.input_elements, output_elements=layer.output_elements
    )
    elements = Figure(
        name="layer elements", what="elements of the augmented layer", unit="count",
        equation="after 17", by_formula=published, counted=counted,
        remark="the formula is the size of M^-1; M^-1 C has alpha m^2 x beta n^2 elements",
    )  # fmt: skip
    if images is None:
        return [elements]

    def over_images(layer_elements: int) -> float:
        return transmission.share_of_data(
            layer_elements=layer_elements, input_elements=layer.input_elements, images=images
        )

    def sent(what: str, value: int, weight: int) -> Figure:
        return Figure(
            name=f"sent bytes {what}", what=f"bytes sent, {what}", unit="bytes",
            counted=transmission.sent_bytes(
                layer_elements=counted, input_elements=layer.input_elements, images=images,
                bytes_per_value=value, bytes_per_weight=weight,
            ),
        )  # fmt: skip

    plain = Figure(
        name="plain bytes", what="bytes of the plain images, 8 bits a value", unit="bytes",
        counted=images * layer.input_elements, remark="before any compression",
    )  # fmt: skip
    return [
        elements,
        Figure(
            name="data share", what="elements of the augmented layer over those of all images",
            unit="share", equation="after 17",
            by_formula=over_images(published), counted=over_images(counted),
        ),
        plain,
        sent("float32", 4, 4),
        sent("int8 and a float16 layer", 1, 2),
    ]  # fmt: skip
