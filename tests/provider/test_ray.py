"""The Ray engine gives the same rows as the local one, on a Ray of this machine."""

import contextlib
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pyrage
import pytest

import mole
from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError, KeyFileError, ParameterError
from mole.exchange.verify import verify
from mole.provider import ray_engine
from mole.provider.deliver import deliver
from mole.provider.keys.transport import Parcel, open_key, seal_key
from mole.provider.plan import Plan
from mole.provider.ray_engine import check_ray
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

IDENTITY = pyrage.x25519.Identity.generate()


def test_a_key_travels_sealed(rng):
    for key in (
        make_key(),
        make_key(core="whitened", sample=rng.normal(size=(400, 3, 8, 8))),
    ):
        parcel = seal_key(key)
        assert open_key(parcel).fingerprint == key.fingerprint
        assert bytes(32).hex().encode() not in parcel.box
        with pytest.raises(KeyFileError, match="changed on its way"):
            open_key(Parcel(bytes(32), parcel.box))


@contextlib.contextmanager
def server(answer: bytes):
    """Something that listens, waits for a first word, and answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def test_something_else_that_listens_is_no_ray(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(ray_engine, "ANSWERS_WITHIN", 5)  # seconds
    with (
        server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as dashboard,
        pytest.raises(DeliveryError, match=r"what is at .* did not answer as Ray"),
    ):
        check_ray(dashboard)


def test_what_ray_says_of_a_cluster_that_it_cannot_join_is_passed_on(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(ray_engine, "PROBE", "raise RuntimeError('its Python is another version')")
    with (
        server(b"") as old,
        pytest.raises(DeliveryError, match=f"Ray at {old} cannot be used: its Python is another version"),
    ):
        check_ray(old)


def test_an_address_is_tried_before_any_work():
    with server(b"") as unused, socket.create_connection(unused.split(":")):
        pass
    with pytest.raises(DeliveryError, match=f"no Ray answers at {unused}: Connection refused"):
        check_ray(unused)
    for address in ("host", "host:", ":6379", "host:port"):
        with pytest.raises(DeliveryError, match=f"'{address}' is not an address of a Ray cluster"):
            check_ray(address)
    with pytest.raises(DeliveryError, match=r"no Ray answers at nowhere\.invalid:6379: "):
        check_ray("nowhere.invalid:6379")


def test_its_workers_open_the_data_themselves(tmp_path):
    source = open_source(str(write_npz(tmp_path / "data.npz")))
    with pytest.raises(ParameterError, match="give its path or URL as the source"):
        deliver(source, make_layer(), make_key(), tmp_path / "out", engine="ray")
    with pytest.raises(ParameterError, match='give engine="ray"'):
        deliver(source, make_layer(), make_key(), tmp_path / "out", ray_address="host:6379")
    with pytest.raises(ParameterError, match="engine 'spark' is unknown"):
        deliver(source, make_layer(), make_key(), tmp_path / "out", engine="spark")
    assert not (tmp_path / "out").exists()


def test_a_plan_travels_without_what_was_opened(tmp_path):
    write_npz(tmp_path / "data.npz")
    plan = Plan(
        source=open_source(str(tmp_path / "data.npz")), key=make_key(7), layer=make_layer(),
        source_address=str(tmp_path / "data.npz"), labels=False,
    )  # fmt: skip
    content = pickle.dumps(plan)
    assert bytes([7] * 32) not in content
    there = pickle.loads(content)
    assert (there.delivery_id, there.jobs) == (plan.delivery_id, plan.jobs)
    assert there.open_source().splits["train"].labels is None


REAL = """
import os
import ray, ray.data
import psutil  # comes with Ray
from mole.provider.ray_cluster import connected
from mole.provider.ray_engine import check_ray
from mole.errors import DeliveryError
names = "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
before = [os.environ.get(name) for name in names]
with connected(ray, None):
    address = ray.get_runtime_context().gcs_address
    check_ray(address)
    me = psutil.Process()
    print(os.environ["RAY_AUTH_MODE"], len(os.environ["RAY_AUTH_TOKEN"]))
    for process in (me, *me.children(recursive=True)):
        for connection in process.net_connections("inet"):
            if connection.status == "LISTEN":
                print("listens on", connection.laddr.ip.removeprefix("::ffff:"))
    with connected(ray, address):
        pass
    try:
        connected(ray, "elsewhere:6379").__enter__()
    except DeliveryError as error:
        print(str(error).replace(address, "here"))
print([os.environ.get(name) for name in names] == before, ray.is_initialized())
"""


def test_a_real_ray_of_its_own_answers_and_nobody_else_reaches_it(tmp_path):
    """Whatever cluster the environment names, and whatever it says of tokens."""
    pytest.importorskip("ray")
    strange = {"RAY_ADDRESS": "127.0.0.1:1", "RAY_AUTH_MODE": "disabled", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", REAL],
        capture_output=True, text=True, check=False, timeout=240, env={**os.environ, **strange},
    )  # fmt: skip
    first, *listening, refused, last = done.stdout.splitlines() or [done.stderr] * 3
    assert first == "token 64", done.stderr
    assert len(listening) >= 3
    assert {*listening} == {"listens on 127.0.0.1"}
    assert refused == (
        "this process has joined the Ray cluster at here, and the key is meant for elsewhere:6379: "
        "leave it with ray.shutdown() first"
    )
    assert last == "True False"
    assert not list(tmp_path.rglob("auth_token"))


def test_both_engines_give_the_same_bytes(tmp_path):
    pytest.importorskip("ray")
    write_npz(tmp_path / "data.npz", train=900, test=100)
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    make_key().save(tmp_path / "my.key", recipients=[str(IDENTITY.to_public())])
    (tmp_path / "identity.txt").write_text(str(IDENTITY))
    for engine in ("local", "ray"):
        done = subprocess.run(
            [
                Path(sys.executable).with_name("mole"), "deliver", "data.npz",
                "--layer", "layer.safetensors", "--key", "my.key", "--identity", "identity.txt",
                "--dtype", "int8",
                "--engine", engine, "--out", engine, "--json",
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
            env={**os.environ, "RAY_ADDRESS": "127.0.0.1:1"},  # a cluster that nobody asked for
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = re.findall(
            r"^mole: (?:note: |warning: )?the key goes to the Ray cluster at 127\.0\.0\.1:\d+: ",
            done.stderr,
            re.M,
        )
        assert len(told) == (engine == "ray")
        assert json.loads(done.stdout)["rows"] == {"test": 100, "train": 900}
        assert bytes(32).hex() not in done.stdout + done.stderr
    shards = sorted(path.name for path in (tmp_path / "local" / "data").iterdir())
    assert shards == sorted(path.name for path in (tmp_path / "ray" / "data").iterdir())
    for engine in ("local", "ray"):
        checks = {check.what: check for check in verify(LocalStore(tmp_path / engine))}
        assert all(check.holds for check in checks.values()), checks
        assert (
            f"{len(shards)} of {len(shards)} shards were tested, on one row each" in checks["data"].detail
        )
    for name in shards:
        local, ray = (pq.read_table(tmp_path / engine / "data" / name) for engine in ("local", "ray"))
        assert local.equals(ray)
