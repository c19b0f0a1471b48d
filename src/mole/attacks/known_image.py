"""One known image is enough: its patches and features give the kernels, and these every other image."""

import numpy as np

from mole.attacks.tools.attack import Attack, Attacker, Finding
from mole.attacks.tools.deconvolution import Deconvolution
from mole.attacks.tools.views import InjectingView, NotApplicableError
from mole.scheme.convolution import features_of
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, element_count, unroll

AT_MOST = 256
MOST_EQUATIONS = 20_000
NOTHING = 1e-7  # of the largest singular value: patches have 32-bit precision at best


def run(view: InjectingView, rng: np.random.Generator) -> Finding:
    """Regress features of known images on their patches, then undo the layer for all others."""
    patch = _patch_elements(view)
    positions = element_count(view.augmented.output_shape[1:])
    needed = -(-patch // positions)
    if len(view.known) < needed:
        raise NotApplicableError(
            f"a patch has {patch} numbers and an image {positions} patches: it takes at least {needed} "
            f"known images, and there {'is' if len(view.known) == 1 else 'are'} {len(view.known)}"
        )
    used, (layer, rank) = needed, _learned_layer(view, needed)
    while rank < patch and used < min(len(view.known), MOST_EQUATIONS // positions):
        used = min(len(view.known), 2 * used)  # dull images have patches that say too little
        layer, rank = _learned_layer(view, used)
    undo = Deconvolution.of(layer)
    images = "One known image" if used == 1 else f"{used} known images"
    whole = "every number of" if undo.is_exact else f"{undo.rank:,} of the {undo.elements:,} numbers of"
    return Finding(
        words=(
            f"{images} gave the kernels in their secret order, {used * positions:,} equations for {patch} "
            f"unknowns per channel. Undoing them gives {whole} every other image."
        ),
        images=undo(view.features(AT_MOST)),
        facts={
            "known images used": used,
            "known images needed at least": needed,
            "unknowns of a channel": patch,
            "of them determined": rank,
            "numbers pinned down": undo.rank,
            "numbers in an image": undo.elements,
        },
    )


def _patch_elements(view: InjectingView) -> int:
    kernel = view.geometry.kernel
    return element_count((view.input_shape[0], *kernel)) if kernel else element_count(view.input_shape)


def _learned_layer(view: InjectingView, used: int) -> tuple[FirstLayer, int]:
    """A layer with kernels in the delivered order, and how many numbers of each are determined."""
    features = view.augmented.features(view.known_morphed[:used]).astype(np.float64)
    channels = features.shape[1]
    if view.augmented.bias is not None:
        features -= view.augmented.bias.reshape(-1, *(1,) * (features.ndim - 2))
    wanted = np.moveaxis(features, 1, -1).reshape(-1, channels)
    kernels, _, rank, _ = np.linalg.lstsq(_patches(view, used), wanted, rcond=NOTHING)
    colours = view.input_shape[:1] if view.geometry.kernel else (element_count(view.input_shape),)
    weight = kernels.T.reshape(channels, *colours, *view.geometry.kernel)
    return view.geometry.layer(weight, view.augmented.bias, view.input_shape), int(rank)


def _patches(view: InjectingView, used: int) -> Array:
    """Patches of known images, one per row: (images x positions, patch elements)."""
    known = view.known[:used].astype(np.float64)
    if not view.geometry.kernel:
        return unroll(known)
    patch = _patch_elements(view)
    # A layer each of whose channels copies one element of the patch.
    copies = np.eye(patch).reshape(patch, view.input_shape[0], *view.geometry.kernel)
    copied = features_of(view.geometry.layer(copies, None, view.input_shape), known)
    return np.moveaxis(copied, 1, -1).reshape(-1, patch)


ATTACK = Attack(
    name="known-image",
    title="One known image",
    attacker=Attacker.INJECTOR,
    view=InjectingView,
    run=run,
    source="this project: the paper asks for as many known pairs as an image has numbers",
    advice=(
        "Do not let anybody who gets the delivery put images into the data, and leave out images that are "
        "public or that the developer may own."
    ),
)
