"""The engine for many machines: Ray Data does the same per-shard work on every worker.

Each worker opens the source and the store itself, so both must be reachable from all machines. The plan
travels as it is. The key travels sealed, and what opens it separately, so that neither Ray's files nor its
object store hold a readable key. That is all it is good for: Ray's control process has been seen to keep
the opener in its memory, and whoever runs the cluster can read the key (docs/ray.md).
"""

import socket
import subprocess
import sys
import warnings
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mole.errors import DeliveryError, MissingExtraError, MoleError, MoleWarning
from mole.exchange.shards import Encoding
from mole.provider.keys.transport import Parcel, open_key, seal_key
from mole.provider.plan import Plan, ShardJob
from mole.provider.ray_cluster import OURS, cause_of, connected, last_sentence
from mole.provider.sealing import delivery_store
from mole.provider.shard_maker import ShardMaker
from mole.storage.atomic import reason_of
from mole.storage.locations import absolute
from mole.storage.stores import Store

CONNECTS_WITHIN, ANSWERS_WITHIN = 5, 30  # seconds
PROBE = """
import sys
import ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
"""


@dataclass(frozen=True)
class RayEngine:
    """Writes shards with Ray.

    Attributes:
        address: of a running cluster; None for one of its own on this machine.
    """

    address: str | None = None

    def __call__(
        self, maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store
    ) -> Generator[int, None, None]:
        """Write shards on every worker; gives the rows of each as soon as it is written."""
        if not jobs:
            return
        ray = _import_ray()
        ray.data.DataContext.get_current().enable_progress_bars = False
        with connected(ray, self.address):
            cluster = ray.get_runtime_context().gcs_address
            warnings.warn(
                f"the key goes to the Ray cluster at {cluster}: whoever controls it can read it",
                MoleWarning,
                stacklevel=2,
            )
            yield from self._write(ray, maker, jobs, encoding, store)

    def _write(
        self, ray: Any, maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store
    ) -> Generator[int, None, None]:
        parcel = seal_key(maker.key)
        try:
            holder = ray.remote(_Holder).options(num_cpus=0).remote(parcel.opener)
            rows = ray.data.from_items([asdict(job) for job in jobs], override_num_blocks=len(jobs))
            workers = max(1, min(len(jobs), int(ray.cluster_resources().get("CPU", 1))))
            order = (maker.plan, absolute(store.label), parcel.box, encoding, holder)
            for result in rows.map(_Worker, fn_constructor_args=order, concurrency=workers).iter_rows():
                yield result["rows"]
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, MoleError):
                raise DeliveryError(f"a worker failed: {cause.message}", advice=cause.advice) from None
            raise DeliveryError(f"a worker failed: {cause_of(error)}") from None


class _Holder:
    """Hands what opens the key to the workers, so that it lies in no file of Ray's."""

    def __init__(self, opener: bytes) -> None:
        self._opener = opener

    def opener(self) -> bytes:
        return self._opener


class _Worker:
    """One process that makes shards."""

    def __init__(self, plan: Plan, out: str, box: bytes, encoding: Encoding, holder: Any) -> None:
        import ray  # noqa: PLC0415  (only in workers)

        key = open_key(Parcel(ray.get(holder.opener.remote()), box))
        self._maker = ShardMaker(plan, plan.open_source(), key)
        self._encoding = encoding
        self._room = self._maker.room(plan.jobs, encoding)
        self._store = delivery_store(out, plan.recipients, key)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        job = ShardJob(**row)
        self._maker.write(job, self._encoding, self._store, self._room)
        return {"rows": job.rows}


def check_ray(address: str | None) -> None:
    """Refuse a Ray that is not there, before any work is done: Ray itself would try for minutes.

    Raises:
        MissingExtraError: if Ray is not installed.
        DeliveryError: if no Ray answers at the address.
    """
    if address in (*OURS, "auto"):
        _import_ray()
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise DeliveryError(f"'{address}' is not an address of a Ray cluster: write it as host:port")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECTS_WITHIN).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise DeliveryError(f"no Ray answers at {address}: {reason_of(error)}") from None
    _import_ray()
    _join(address)


def _join(address: str) -> None:
    """Let Ray join the cluster at an address, in a process that can be ended when it takes too long."""
    program = [sys.executable, "-P", "-c", PROBE, address]  # -P: a ray.py in this folder is not Ray
    try:
        done = subprocess.run(  # noqa: S603  (our own program; the address is no part of its text)
            program, capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN
        )
    except subprocess.TimeoutExpired:
        raise DeliveryError(
            f"what is at {address} did not answer as Ray within {ANSWERS_WITHIN} seconds: it is not Ray, "
            "or too busy; Ray's port is 6379, or see `ray status`"
        ) from None
    if done.returncode:
        reason = last_sentence(done.stderr) or f"it ended with code {done.returncode}"
        raise DeliveryError(f"Ray at {address} cannot be used: {reason}")


def _import_ray() -> Any:
    try:
        import ray.data  # noqa: PLC0415  (seconds, and an extra)
    except ImportError:
        raise MissingExtraError("engine 'ray' needs Ray", "ray") from None
    return ray
