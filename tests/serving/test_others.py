"""Other people's clients and servers, where they are installed, each in an environment of its own.

python -m venv others && others/bin/pip install 'kserve==0.21.0' onnxruntime 'tritonclient[grpc,http]'
python -m venv mlserver && mlserver/bin/pip install mlserver onnxruntime
MOLE_OTHERS=others/bin/python MOLE_MLSERVER=mlserver/bin/python pytest tests/serving/test_others.py
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import mole
from served import free_ports

OTHERS, MLSERVER = os.environ.get("MOLE_OTHERS"), os.environ.get("MOLE_MLSERVER")
needs_others = pytest.mark.skipif(
    not OTHERS, reason="MOLE_OTHERS names no Python with KServe and tritonclient"
)
needs_mlserver = pytest.mark.skipif(not MLSERVER, reason="MOLE_MLSERVER names no Python with MLServer")

TRITON = """
import json, sys
import numpy as np
import tritonclient.grpc, tritonclient.http
http, grpc, model, file = sys.argv[1:]
rows, found = np.load(file), {}
for module, place in ((tritonclient.http, http), (tritonclient.grpc, grpc)):
    client = module.InferenceServerClient(place)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model)
    given = module.InferInput("morphed", list(rows.shape), "FP32")
    given.set_data_from_numpy(rows)
    answer = client.infer(model, [given], outputs=[module.InferRequestedOutput("probabilities")])
    found[module.__name__] = answer.as_numpy("probabilities").tolist()
print(json.dumps(found))
"""

KSERVE = """
import sys
file, http, grpc = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.argv = sys.argv[:1]
import kserve, onnxruntime
from kserve.protocol.infer_type import InferOutput, InferResponse

class Network(kserve.Model):
    def load(self):
        self.session, self.ready = onnxruntime.InferenceSession(file), True

    def predict(self, payload, headers=None, response_headers=None):
        (found,) = self.session.run(None, {"morphed": payload.inputs[0].as_numpy()})
        output = InferOutput("probabilities", list(found.shape), "FP32")
        output.set_data_from_numpy(found, binary_data=True)
        return InferResponse(payload.id or "none", self.name, [output])

network = Network("model")
network.load()
kserve.ModelServer(http_port=http, grpc_port=grpc).start([network])
"""

RUNTIME = """
import numpy as np, onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Network(MLModel):
    async def load(self):
        self._session = onnxruntime.InferenceSession(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        rows = NumpyCodec.decode_input(payload.inputs[0]).astype(np.float32)
        (found,) = self._session.run(None, {"morphed": rows})
        output = NumpyCodec.encode_output("probabilities", found)
        return InferenceResponse(id=payload.id, model_name=self.name, outputs=[output])
"""


@contextmanager
def started(command: list, port: int, cwd: Path) -> Iterator[None]:
    """A server, once something listens at its port."""
    process = subprocess.Popen(
        [*map(str, command)], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(600):
            assert process.poll() is None
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def expected(vgg_file) -> np.ndarray:
    return vgg_file.torch(mole.morph(vgg_file.layer.plain(vgg_file.images[:70]), vgg_file.key))


@needs_others
def test_tritons_client_talks_to_our_server(server, vgg_file, expected, tmp_path):
    np.save(tmp_path / "rows.npy", mole.morph(vgg_file.layer.plain(vgg_file.images[:70]), vgg_file.key))
    places = [url.partition("//")[2] for url in (server.http, server.grpc)]
    done = subprocess.run(
        [OTHERS, "-c", TRITON, *places, "vgg", tmp_path / "rows.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    for found in json.loads(done.stdout).values():
        assert np.allclose(found, expected, atol=1e-4)


@needs_others
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_our_client_talks_to_kserves_server(vgg_file, expected, tmp_path, scheme):
    ports = dict(zip(("http", "grpc"), free_ports(2), strict=True))
    command = [OTHERS, "-c", KSERVE, vgg_file.file, ports["http"], ports["grpc"]]
    with (
        started(command, ports[scheme], tmp_path),
        mole.Client(f"{scheme}://127.0.0.1:{ports[scheme]}", vgg_file.key, vgg_file.layer) as client,
    ):
        assert np.allclose(client.predict(vgg_file.images[:70]).probabilities, expected, atol=1e-4)


@needs_mlserver
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_our_client_talks_to_mlserver(vgg_file, expected, tmp_path, scheme):
    ports = dict(zip(("http", "grpc", "metrics"), free_ports(3), strict=True))
    (tmp_path / "runtime.py").write_text(RUNTIME)
    settings = {
        "host": "127.0.0.1", "http_port": ports["http"], "grpc_port": ports["grpc"],
        "metrics_port": ports["metrics"], "parallel_workers": 0,
    }  # fmt: skip
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    model = {
        "name": "model", "implementation": "runtime.Network", "parameters": {"uri": str(vgg_file.file)},
        "inputs": [{"name": "morphed", "datatype": "FP32", "shape": [-1, 1, 12, 12]}],
    }  # fmt: skip
    (tmp_path / "model-settings.json").write_text(json.dumps(model))
    command = [Path(MLSERVER or "").with_name("mlserver"), "start", "."]
    url = f"{scheme}://127.0.0.1:{ports[scheme]}"
    with (
        started(command, ports[scheme], tmp_path),
        mole.Client(url, vgg_file.key, vgg_file.layer, binary=False) as client,
    ):
        assert np.allclose(client.predict(vgg_file.images[:70]).probabilities, expected, atol=1e-4)
