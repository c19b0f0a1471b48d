"""Every figure of a setting: what breaking it would take, and what it costs.

A figure has up to three versions: as the paper prints it, as its formula gives it, and as counted.
"""

from mole.analysis import overhead, security
from mole.analysis.figure import Figure
from mole.analysis.sizes import Setting, core_side

IN_TILES = "the formula is for blocks of rows; in tiles the layer is a convolution over them"


def figures_of(setting: Setting) -> tuple[Figure, ...]:
    """Security first, then overhead; figures that need an unknown number are left out.

    >>> from mole.analysis.sizes import LayerSizes
    >>> layer = LayerSizes.conv(input_shape=(3, 32, 32), channels=64, kernel=3, padding=1)
    >>> figures = {figure.name: figure for figure in figures_of(Setting(layer=layer, kappa=3))}
    >>> figures["pairs"].words("by_formula"), figures["pairs"].words("counted")
    ('1,024', '342')
    """
    return (*security_figures(setting), *overhead_figures(setting))


def security_figures(setting: Setting) -> list[Figure]:
    """What guessing, solving and known pairs would take."""
    return [*_tiles(setting), *_guesses(setting), *_reversing(setting), _pairs(setting)]


def _tiles(setting: Setting) -> list[Figure]:
    if setting.tiles is None:
        return []
    side = core_side(input_elements=setting.layer.input_elements, kappa=setting.kappa)
    return [
        Figure(
            name="core side", what="side of the core, which morphs every tile", unit="count", counted=side,
            remark=f"used {setting.kappa:,} times in each image: tiles hide from the eye only",
        )
    ]  # fmt: skip


def _guesses(setting: Setting) -> list[Figure]:
    core = security.log2_core_guess_bound(
        input_elements=setting.layer.input_elements, kappa=setting.kappa, sigma=setting.sigma
    )
    order = security.log10_channel_order_guess(channels=setting.layer.output_channels)
    return [
        Figure(
            name="core guess", what="chance that a blind guess of the core recovers images, at most",
            unit="log2", equation="10", by_formula=core, counted=core,
            remark="of guesses that look at nothing; no attack has to guess",
        ),
        Figure(
            name="channel order guess", what="chance of guessing the channel order",
            unit="log10", equation="before 11", by_formula=order, counted=order,
            remark="the order need not be guessed: the augmented layer shows it",
        ),
        Figure(
            name="seed guess", what="chance of guessing the key's seed", unit="log2",
            counted=security.log2_seed_guess(),
            remark="everything secret comes from a seed of 256 bits, so no smaller chance than this counts",
        ),
    ]  # fmt: skip


def _reversing(setting: Setting) -> list[Figure]:
    layer, kappa = setting.layer, setting.kappa
    unknowns = security.counted_unknowns(
        input_elements=layer.input_elements, output_channels=layer.output_channels,
        kernel_elements=layer.kernel_elements, kappa=kappa,
    )  # fmt: skip
    equations = _layer_elements(setting)
    bound = security.log2_reversing_bound(
        input_elements=layer.input_elements, output_positions=layer.output_positions,
        kernel_elements=layer.kernel_elements, kappa=kappa, sigma=setting.sigma,
    )  # fmt: skip
    more = "more equations than unknowns: nothing is left to guess" if equations >= unknowns else (
        "fewer equations than unknowns, which proves nothing: an attack need not find them all"
    )  # fmt: skip
    return [
        Figure(
            name="reversing unknowns", what="unknowns in solving the augmented layer for its factors",
            unit="count", equation="12", counted=unknowns,
            by_formula=security.published_unknowns(
                input_elements=layer.input_elements, kernel_elements=layer.kernel_elements, kappa=kappa
            ),
            remark="the formula counts a vector as one unknown; counted are numbers, over all channels",
        ),
        Figure(
            name="reversing equations", what="equations in solving it",
            unit="count", equation="before 13", counted=equations,
            by_formula=security.published_equations(output_positions=layer.output_positions),
            remark="the formula takes one channel's positions; each element of the layer is an equation",
        ),
        Figure(
            name="kappa limit", what="largest kappa for which the unknowns outnumber the equations",
            unit="count", equation="13",
            by_formula=security.published_kappa_limit(
                input_elements=layer.input_elements, output_positions=layer.output_positions
            ),
            remark="rests on the formulas of the two lines above",
        ),
        Figure(
            name="reversing guess", what="chance of guessing what the equations leave open, at most",
            unit="log2", equation="14", by_formula=bound, remark=more,
        ),
    ]  # fmt: skip


def _pairs(setting: Setting) -> Figure:
    elements, kappa = setting.layer.input_elements, setting.kappa
    return Figure(
        name="pairs", what="known pairs of plain and morphed images that give the core",
        unit="count", equation="15",
        by_formula=security.published_pairs(input_elements=elements, kappa=kappa),
        counted=security.counted_pairs(input_elements=elements, kappa=kappa),
        remark="without the augmented layer, ceil(q / kappa); with it, one pair is enough",
    )  # fmt: skip


def _layer_elements(setting: Setting) -> int:
    """Elements of the augmented layer, each of which is also an equation for the core."""
    if setting.tiles is not None:
        return setting.tiles.layer_elements
    return overhead.counted_layer_elements(
        input_elements=setting.layer.input_elements, output_elements=setting.layer.output_elements
    )


def overhead_figures(setting: Setting) -> list[Figure]:
    """What the provider and the developer compute, and what is sent."""
    return [*_computing(setting), *_transmission(setting)]


def _computing(setting: Setting) -> list[Figure]:
    layer, kappa = setting.layer, setting.kappa
    published = overhead.published_provider_macs(
        input_channels=layer.input_channels, input_elements=layer.input_elements, kappa=kappa
    )
    counted = overhead.counted_provider_macs(input_elements=layer.input_elements, kappa=kappa)
    extra = overhead.developer_extra_macs(
        input_elements=layer.input_elements, output_elements=layer.output_elements,
        kernel_elements=layer.kernel_elements,
    )  # fmt: skip
    added = extra if setting.tiles is None else overhead.tiles_extra_macs(
        layer_macs=setting.tiles.macs, output_elements=layer.output_elements,
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
            unit="count", equation="17", by_formula=extra, counted=added,
            remark="" if setting.tiles is None else IN_TILES,
        ),
    ]  # fmt: skip
    if setting.network_macs is None:
        return figures
    macs = setting.network_macs
    inference = overhead.share_of_inference(extra_macs=extra, network_macs=macs)
    return [
        *figures,
        Figure(
            name="provider share", what="provider's multiplications over the network's", unit="share",
            equation="16",
            by_formula=overhead.share_of_inference(extra_macs=published, network_macs=macs),
            counted=overhead.share_of_inference(extra_macs=counted, network_macs=macs),
        ),
        Figure(
            name="inference share", what="developer's additional cost of inference", unit="share",
            equation="17", by_formula=inference,
            counted=overhead.share_of_inference(extra_macs=added, network_macs=macs),
        ),
        Figure(
            name="training share", what="developer's additional cost of training", unit="share",
            counted=overhead.share_of_training_step(extra_macs=added, network_macs=macs),
            remark="the layer is frozen: a forward pass more in a step of about three",
        ),
        Figure(
            name="stored inference share", what="the same of inference, for the layer as it is stored",
            unit="share",
            counted=overhead.share_of_inference(
                extra_macs=max(0, layer.stored_numbers - layer.output_elements * layer.kernel_elements),
                network_macs=macs,
            ),
            remark="in two factors where these have fewer numbers; each number is one multiplication",
        ),
    ]  # fmt: skip


def _transmission(setting: Setting) -> list[Figure]:
    layer, images = setting.layer, setting.images
    published = overhead.published_layer_elements(input_elements=layer.input_elements)
    counted = _layer_elements(setting)
    elements = Figure(
        name="layer elements", what="elements of the augmented layer", unit="count",
        equation="after 17", by_formula=published, counted=counted,
        remark="the formula is the size of M^-1; M^-1 C has alpha m^2 x beta n^2 elements"
        if setting.tiles is None else IN_TILES,
    )  # fmt: skip
    stored = Figure(
        name="stored numbers", what="numbers of the augmented layer as it is stored", unit="count",
        counted=layer.stored_numbers, remark="in two factors where these have fewer",
    )  # fmt: skip
    if images is None:
        return [elements, stored]

    def over_images(layer_elements: int) -> float:
        return overhead.share_of_data(
            layer_elements=layer_elements, input_elements=layer.input_elements, images=images
        )

    def sent(what: str, value: int, weight: int) -> Figure:
        return Figure(
            name=f"sent bytes {what}", what=f"bytes sent, {what}", unit="bytes",
            counted=overhead.sent_bytes(
                layer_elements=layer.stored_numbers, input_elements=layer.input_elements, images=images,
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
        stored,
        plain,
        sent("float32", 4, 4),
        sent("int8 and a float16 layer", 1, 2),
    ]  # fmt: skip
