"""The paper's bounds and overheads, as it publishes them and as counting gives them.

>>> from mole.analysis import PRESETS
>>> for figure in PRESETS["cifar-vgg16"].figures():
...     if figure.name in ("channel order guess", "inference share", "data share"):
...         print(figure.name, "|", figure.words("published"), "|", figure.words("counted"))
channel order guess | 7.9e-90 | 7.9e-90
inference share | 9 % | 63.6 %
data share | 5.12 % | 109 %

The formulas are pure functions over plain numbers: `security` and `overhead` have them. They follow the
paper's section 'Theoretical analysis on security and overhead'; equations are numbered as in its text, from
1 to 17, and on into its appendix. A name that starts with `published_` is the paper's own formula where it
does not stand up to counting; `counted_` is ours.
"""

from mole.analysis.figure import Figure
from mole.analysis.figures import figures_of
from mole.analysis.presets import PRESETS, Preset
from mole.analysis.sizes import LayerSizes, Setting
from mole.analysis.tile_sizes import TileSizes

__all__ = ["PRESETS", "Figure", "LayerSizes", "Preset", "Setting", "TileSizes", "figures_of"]
