"""Every figure that follows from a setting."""

from mole.analysis.figure import Figure
from mole.analysis.overhead import overhead_figures
from mole.analysis.security import security_figures
from mole.analysis.setting import Setting


def figures_of(setting: Setting) -> tuple[Figure, ...]:
    """Security first, then overhead; figures that need an unknown number are left out.

    >>> from mole.analysis.sizes import LayerSizes
    >>> layer = LayerSizes.conv(input_shape=(3, 32, 32), channels=64, kernel=3, padding=1)
    >>> figures = {figure.name: figure for figure in figures_of(Setting(layer=layer, kappa=3))}
    >>> figures["pairs"].words("by_formula"), figures["pairs"].words("counted")
    ('1,024', '342')
    """
    return (*security_figures(setting), *overhead_figures(setting))
