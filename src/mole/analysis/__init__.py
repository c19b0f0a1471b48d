"""The paper's bounds and overheads, as it publishes them and as counting gives them.

>>> from mole.analysis import PRESETS
>>> for figure in PRESETS["cifar-vgg16"].figures():
...     if figure.name in ("channel order guess", "inference share", "data share"):
...         print(figure.name, "|", figure.words("published"), "|", figure.words("counted"))
channel order guess | 7.9e-90 | 7.9e-90
inference share | 9 % | 63.6 %
data share | 5.12 % | 109 %

Pure functions over plain numbers. They follow the paper's section 'Theoretical analysis on security and
overhead'; equations are numbered as in its text, from 1 to 17, and on into its appendix. A name that starts
with `published_` is the paper's own formula where it does not stand up to counting, `counted_` is ours.
"""

from mole.analysis.figures import Figure, figures_of
from mole.analysis.guessing import (
    distance_for_error,
    log2_core_guess_bound,
    log2_near_guess_bound,
    log2_seed_guess,
    log10_channel_order_guess,
)
from mole.analysis.overhead import (
    augmented_layer_macs,
    counted_layer_elements,
    counted_provider_macs,
    developer_extra_macs,
    first_layer_macs,
    published_layer_elements,
    published_provider_macs,
    sent_bytes,
    share_of_data,
    share_of_inference,
    share_of_training_step,
)
from mole.analysis.presets import PRESETS, Preset
from mole.analysis.sizes import LayerSizes, Setting
from mole.analysis.solving import (
    counted_equations,
    counted_pairs,
    counted_unknowns,
    log2_reversing_bound,
    published_equations,
    published_kappa_limit,
    published_pairs,
    published_unknowns,
)

__all__ = [
    "PRESETS",
    "Figure",
    "LayerSizes",
    "Preset",
    "Setting",
    "augmented_layer_macs",
    "counted_equations",
    "counted_layer_elements",
    "counted_pairs",
    "counted_provider_macs",
    "counted_unknowns",
    "developer_extra_macs",
    "distance_for_error",
    "figures_of",
    "first_layer_macs",
    "log2_core_guess_bound",
    "log2_near_guess_bound",
    "log2_reversing_bound",
    "log2_seed_guess",
    "log10_channel_order_guess",
    "published_equations",
    "published_kappa_limit",
    "published_layer_elements",
    "published_pairs",
    "published_provider_macs",
    "published_unknowns",
    "sent_bytes",
    "share_of_data",
    "share_of_inference",
    "share_of_training_step",
]
