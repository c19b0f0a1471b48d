"""The engine for many machines: Ray Data runs the same per-shard work on every worker.

Each worker opens the source and the store itself, so both must be reachable from all machines. The key
travels sealed; what opens it is held by one actor and goes to the workers from memory to memory.
"""

import socket
from dataclasses import asdict, dataclass
from typing import Any

from mole.errors import DeliveryError, MissingExtraError
from mole.exchange.encoding import Encoding
from mole.progress import Progress
from mole.provider.keys import MorphKey
from mole.provider.keys.transport import Parcel, open_key, seal_key
from mole.provider.plan import Options
from mole.provider.shard_maker import ShardJob, ShardMaker
from mole.scheme.first_layer import FirstLayer
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.storage.locations import reason_of
from mole.storage.stores import Store, open_store

ANSWERS_WITHIN = 5  # seconds
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # an empty frame of that kind, HTTP/2's first word
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS


@dataclass(frozen=True)
class RayEngine:
    """Writes shards with Ray.

    Attributes:
        data: path or URL of the source, as every worker sees it.
        out: path or URL of the delivery, as every worker sees it.
        layer, key, options: what the delivery is made from.
        address: of a running cluster; None for one on this machine.
    """

    data: str
    out: str
    layer: FirstLayer
    key: MorphKey
    options: Options
    address: str | None = None

    def __call__(
        self, maker: ShardMaker, jobs: list[ShardJob], encoding: Encoding, store: Store, progress: Progress
    ) -> None:
        """Write every shard that is missing."""
        ray = _import_ray()
        present = store.names()
        missing = [job for job in jobs if job.name not in present]
        total, done = sum(job.rows for job in jobs), sum(job.rows for job in jobs if job not in missing)
        progress(done, total)
        if not missing:
            return
        parcel = seal_key(self.key)
        try:
            _start(ray, self.address)
            holder = ray.remote(_Holder).options(num_cpus=0).remote(parcel.opener)
            preparation = Preparation.for_layer(
                self.layer, mode=self.options.mode, resize=self.options.resize
            )
            order = _WorkersOrder(
                self.data, self.out, parcel.box, preparation, self.options, encoding, maker.delivery_id
            )
            rows = ray.data.from_items([asdict(job) for job in missing], override_num_blocks=len(missing))
            workers = max(1, min(len(missing), int(ray.cluster_resources().get("CPU", 1))))
            results = rows.map(_Worker, fn_constructor_args=(order, holder), concurrency=workers)
            for result in results.iter_rows():
                done += result["rows"]
                progress(done, total)
        except ray.exceptions.RayError as error:
            raise DeliveryError(f"a worker failed: {_cause(error)}") from None
        finally:
            ray.shutdown()


@dataclass(frozen=True)
class _WorkersOrder:
    """What every worker is told; the key in it is sealed."""

    data: str
    out: str
    box: bytes
    preparation: Preparation
    options: Options
    encoding: Encoding
    delivery_id: str


class _Holder:
    """Keeps what opens the key, in memory only."""

    def __init__(self, opener: bytes) -> None:
        self._opener = opener

    def opener(self) -> bytes:
        return self._opener


class _Worker:
    """One process that makes shards."""

    def __init__(self, order: _WorkersOrder, holder: Any) -> None:
        import ray  # noqa: PLC0415  (only in workers)

        key = open_key(Parcel(ray.get(holder.opener.remote()), order.box))
        self._order = order
        self._maker = ShardMaker(
            open_source(order.data), key, order.preparation, order.delivery_id,
            keep=order.options.keep, skip_bad=order.options.skip_bad,
        )  # fmt: skip
        self._store = open_store(order.out)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        job = ShardJob(**row)
        self._maker.write(job, self._order.encoding, self._store)
        return {"rows": job.rows}


def check_ray(address: str | None) -> None:
    """Refuse a Ray that is not there, before any work is done: Ray itself would try for minutes.

    Raises:
        MissingExtraError: if Ray is not installed.
        DeliveryError: if no Ray answers at the address.
    """
    if address is not None and address not in ("auto", "local"):
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not host or not port.isdecimal():
            raise DeliveryError(f"'{address}' is no address of a Ray cluster: write it as host:port")
        try:
            answers = _answers(host.strip("[]"), int(port))
        except (OSError, OverflowError, UnicodeError) as error:
            raise DeliveryError(f"no Ray answers at {address}: {reason_of(error)}") from None
        if not answers:
            raise DeliveryError(
                f"what answers at {address} is no Ray: its port is 6379, or see `ray status`"
            )
    _import_ray()


def _answers(host: str, port: int) -> bool:
    """Whether something that speaks as Ray does, HTTP/2, greets back."""
    with socket.create_connection((host, port), timeout=ANSWERS_WITHIN) as connection:
        connection.sendall(GREETING)
        return connection.recv(len(SETTINGS))[3:4] == SETTINGS[3:4]


def _start(ray: Any, address: str | None) -> None:
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        place = "on this machine" if address is None else f"at {address}"
        raise DeliveryError(f"Ray {place} cannot be used: {_cause(error)}") from None


def _import_ray() -> Any:
    try:
        import ray  # noqa: PLC0415  (seconds, and an extra)
        import ray.data  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("engine 'ray' needs Ray: pip install 'morphed-learning[ray]'") from None
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def _cause(error: Exception) -> str:
    """The last line of what a worker said: the sentence, without its traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].split("Error: ", 1)[-1] if lines else type(error).__name__
