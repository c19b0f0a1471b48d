"""Which Ray cluster gets a key: the one that was named, or one of its own on this machine.

Ray by itself joins whatever cluster the environment or a file of a running one names, and a cluster on one
machine listens to the whole network. A cluster that is started here listens on loopback only, has no
dashboard, and asks everybody for a token that no file holds.
"""

import os
import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from mole.errors import DeliveryError

OURS = (None, "local")  # addresses that stand for a cluster of its own
LOOPBACK = "127.0.0.1"
TOKEN, TOKEN_PATH, MODE = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"
MANY_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextmanager
def connected(ray: Any, address: str | None) -> Generator[None, None, None]:
    """Be connected to a cluster for a while: to the one that this process has joined already, or else one.

    Raises:
        DeliveryError: if it cannot be used, or this process has joined another one.
    """
    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address not in (*OURS, "auto", joined):
            raise DeliveryError(
                f"this process has joined the Ray cluster at {joined}, and the key is meant for {address}: "
                "leave it with ray.shutdown() first"
            )
        yield
        return
    with _local_cluster(ray) if address in OURS else _joined(ray, str(address)):
        yield


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    """Join a running cluster."""
    _init(ray, f"at {address}", address=address)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _local_cluster(ray: Any) -> Iterator[None]:
    """Start a cluster that nobody else can reach."""
    # Ray then asks for a token by default, which must be this one.
    private = {TOKEN: secrets.token_hex(32), TOKEN_PATH: None, MODE: None, MANY_MACHINES: "0"}
    constants = ray._private.ray_constants  # Ray has no other way to listen on loopback
    as_before = constants.ENABLE_RAY_CLUSTER
    with _environment(private):
        _forget_token(ray)
        constants.ENABLE_RAY_CLUSTER = False
        try:
            _init(ray, "on this machine", address="local", _node_ip_address=LOOPBACK)
            where = ray.get_runtime_context().gcs_address
            if not where.startswith(f"{LOOPBACK}:"):
                raise DeliveryError(
                    f"Ray on this machine listens at {where}, where others reach it: use the engine 'local'"
                )
            yield
        finally:
            ray.shutdown()
            constants.ENABLE_RAY_CLUSTER = as_before
    _forget_token(ray)


def _init(ray: Any, place: str, **options: Any) -> None:
    try:
        ray.init(**options, log_to_driver=False, logging_level="error", include_dashboard=False)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise DeliveryError(f"Ray {place} cannot be used: {cause_of(error)}") from None


def _forget_token(ray: Any) -> None:
    """Let Ray read its token anew; it keeps one for as long as the process runs."""
    with suppress(AttributeError):
        ray._raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Some environment variables for this process and those that it starts; None for none."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def cause_of(error: Exception) -> str:
    """Why Ray or a worker failed: the sentence, without its traceback."""
    return last_sentence(str(error)) or type(error).__name__


def last_sentence(text: str) -> str:
    r"""The last line of a traceback, without the name of its exception.

    >>> last_sentence("Traceback ...\nRuntimeError: it is too old\n")
    'it is too old'
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].split("Error: ", 1)[-1] if lines else ""
