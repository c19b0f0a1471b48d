"""The figures of the security analysis, for a setting."""

from mole.analysis import brute_force, guessing, pairs, reversing
from mole.analysis.figure import Figure
from mole.analysis.setting import Setting


def security_figures(setting: Setting) -> list[Figure]:
    """What guessing, solving and known pairs would take."""
    return [*_guesses(setting), *_reversing(setting), _pairs(setting)]


def _guesses(setting: Setting) -> list[Figure]:
    core = brute_force.log2_core_guess_bound(
        input_elements=setting.layer.input_elements, kappa=setting.kappa, sigma=setting.sigma
    )
    order = guessing.log10_channel_order_guess(channels=setting.layer.output_channels)
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
            counted=guessing.log2_seed_guess(),
            remark="everything secret comes from a seed of 256 bits, so no smaller chance than this counts",
        ),
    ]  # fmt: skip


def _reversing(setting: Setting) -> list[Figure]:
    layer, kappa = setting.layer, setting.kappa
    unknowns = reversing.counted_unknowns(
        input_elements=layer.input_elements, output_channels=layer.output_channels,
        kernel_elements=layer.kernel_elements, kappa=kappa,
    )  # fmt: skip
    equations = reversing.counted_equations(
        input_elements=layer.input_elements, output_elements=layer.output_elements
    )
    bound = reversing.log2_reversing_bound(
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
            by_formula=reversing.published_unknowns(
                input_elements=layer.input_elements, kernel_elements=layer.kernel_elements, kappa=kappa
            ),
            remark="the formula counts a vector as one unknown; counted are numbers, over all channels",
        ),
        Figure(
            name="reversing equations", what="equations in solving it",
            unit="count", equation="before 13", counted=equations,
            by_formula=reversing.published_equations(output_positions=layer.output_positions),
            remark="the formula takes one channel's positions; each element of the layer is an equation",
        ),
        Figure(
            name="kappa limit", what="largest kappa for which the unknowns outnumber the equations",
            unit="count", equation="13",
            by_formula=reversing.published_kappa_limit(
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
        by_formula=pairs.published_pairs(input_elements=elements, kappa=kappa),
        counted=pairs.counted_pairs(input_elements=elements, kappa=kappa),
        remark="without the augmented layer, ceil(q / kappa); with it, one pair is enough",
    )  # fmt: skip
