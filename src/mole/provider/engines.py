"""What does the work of a delivery, as the provider names it, or why it cannot."""

import os
from typing import Literal, get_args

from mole.errors import ParameterError
from mole.provider.delivery_maker import Engine
from mole.provider.device_product import DeviceProduct
from mole.provider.local_engine import write_here
from mole.provider.ray_engine import RayEngine, check_ray
from mole.scheme.block_product import Product, multiply
from mole.sources.source import Source
from mole.storage.stores import Store

EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
Address = str | os.PathLike[str]


def chosen_product(device: str | None, engine: EngineName) -> Product:
    """What multiplies; an error if there is no such device, before any work is done."""
    if device is None:
        return multiply
    if engine != "local":
        raise ParameterError(
            "a device is for the engine that works on this machine", advice={"engine": "local"}
        )
    return DeviceProduct(device)


def chosen_engine(
    name: EngineName, ray_address: str | None, source: Address | Source, out: Address | Store
) -> Engine:
    """What writes shards; an error if it could not, before any work is done."""
    if name not in ENGINES:
        raise ParameterError(f"engine '{name}' is unknown", advice={"engine": ENGINES})
    if name == "local":
        if ray_address is not None:
            raise ParameterError("a Ray address is for the engine that uses Ray", advice={"engine": "ray"})
        return write_here
    if isinstance(source, Source):
        raise ParameterError("Ray's workers open the data themselves: give its path or URL as the source")
    if not isinstance(out, str | os.PathLike):
        raise ParameterError("Ray's workers open the delivery themselves: give its path or URL as `out`")
    check_ray(ray_address)
    return RayEngine(ray_address)
