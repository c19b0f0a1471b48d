"""What does the image of a row look like? A decoder learns it from similar images, through the same noise.

Two decoders learn from public images that went through the same front and the same noise: the best linear
map, which has a closed form, and with PyTorch a small network that corrects it. The better one on public
images set aside rebuilds the delivered ones. Where a row says next to nothing, the best that either can do
is to draw the mean of all images, whatever the row.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from mole.attacks.tools.attack import Attack, Finding, Reader
from mole.attacks.tools.linear_on_noise import LinearOnNoise
from mole.attacks.tools.protected_view import Draws, ProtectedView
from mole.attacks.tools.trained_decoder import HELD_OUT, Decoder, Examples
from mole.errors import MissingExtraError
from mole.scheme.shapes import Array, Shape

FEWEST_PUBLIC = 64


def run(view: ProtectedView, rng: np.random.Generator) -> Finding:
    """Learn from public images, rebuild the first rows."""
    public, features = view.similar(FEWEST_PUBLIC)
    aside = max(1, round(HELD_OUT * len(public)))
    check, learn = (Examples(public[part], features[part]) for part in _parts(aside))
    flat = learn.images.reshape(len(learn.images), -1)
    linear = LinearOnNoise.fit(view.channel.expected(learn.features), flat, view.channel.sigma)
    coarse = partial(_drawn, linear, public.shape[1:])
    seen = view.channel.noisy(check.features, Draws(rng))
    deviation = max(float(check.images.std()), 1e-12)
    errors = {
        "the mean image": _error(learn.images.mean(axis=0), check.images) / deviation,
        "a linear map": _error(coarse(seen), check.images) / deviation,
    }
    rebuild: Callable[[Array], Array] = coarse
    trained = "without PyTorch no network was tried"
    try:
        network = Decoder(learn, check, coarse, rng, noisy=partial(_noisy, view, rng))
    except MissingExtraError:
        pass
    else:
        errors["a network"] = network.error
        trained = f"a small network was trained for {network.seconds:.0f} seconds"
        rebuild = network if network.error < errors["a linear map"] else coarse
    better = "the network" if rebuild is not coarse else "the linear map"
    told = ", ".join(f"{error:.3f} for {name}" for name, error in errors.items())
    return Finding(
        words=(
            f"A linear map was worked out from {len(learn.images):,} public images through the same front "
            f"and the same noise, and {trained}. On public images set aside the error over their "
            f"standard deviation is {told}; {better} rebuilt the images."
        ),
        images=rebuild(view.rows[: view.rebuilt]),
        facts={"public images": len(learn.images), **{f"error of {name}": errors[name] for name in errors}},
    )


def _parts(aside: int) -> tuple[slice, slice]:
    return slice(aside), slice(aside, None)


def _drawn(linear: LinearOnNoise, shape: Shape, rows: Array) -> Array:
    """What a linear map draws of rows, (n, d) to (n, *shape)."""
    return np.asarray(linear(rows).reshape(len(rows), *shape), np.float32)


def _noisy(view: ProtectedView, rng: np.random.Generator, features: Array) -> Array:
    return view.channel.noisy(features, Draws(rng))


def _error(rebuilt: Array, images: Array) -> float:
    return float(np.sqrt(np.square(rebuilt - images).mean()))


ATTACK = Attack(
    name="noisy-inversion",
    title="Decoders that learned from similar images",
    attacker=Reader.REBUILDER,
    view=ProtectedView,
    run=run,
    source="this project: linear least squares over images and noise, and a network that corrects it",
    advice="Deliver with fewer bits if that shows too much.",
)
