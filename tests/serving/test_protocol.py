"""The server speaks the published protocol, and says what is wrong with what it refuses."""

import http.client
import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mole
from mole.errors import ServerError
from mole.exchange.inference_messages import LENGTH_HEADER, Message, Tensor, pack
from mole.exchange.inference_protobuf import from_response, to_response
from mole.exchange.served_model import ServedFacts
from mole.provider.channels import Address
from mole.provider.grpc_channel import GrpcChannel
from mole.provider.http_channel import HttpChannel
from mole.storage.typed_json import FormatError
from served import Running, serving, start, stop

ROWS = np.zeros((2, 1, 12, 12), np.float32)
MANY = np.random.default_rng(0).normal(size=(4096, 1, 12, 12)).astype(np.float32)


def asked(url: str, method: str, path: str, body: bytes | None = None, **headers: str):
    """Status, headers and body of an answer, as any HTTP client gets them."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, response.headers, content


def request(**changes) -> bytes:
    tensor = {"name": "morphed", "shape": [1, 1, 12, 12], "datatype": "FP32", "data": [0.5] * 144}
    content = {"inputs": [tensor | changes.pop("tensor", {})], **changes}
    return json.dumps(content).encode()


def test_health_and_metadata(server, vgg_file):
    assert asked(server.http, "GET", "/v2/health/live")[0] == 200
    assert json.loads(asked(server.http, "GET", "/v2/health/ready")[2]) == {"ready": True}
    assert json.loads(asked(server.http, "GET", "/v2")[2])["extensions"] == ["binary_tensor_data"]
    for path in ("/v2/models/vgg", "/v2/models/vgg/versions/1"):
        facts = json.loads(asked(server.http, "GET", path)[2])
        assert facts["inputs"] == [{"name": "morphed", "datatype": "FP32", "shape": [-1, 1, 12, 12]}]
        assert facts["outputs"] == [{"name": "probabilities", "datatype": "FP32", "shape": [-1, 4]}]
        served = ServedFacts.parse(facts["properties"]["mole-model"])
        assert served.key_fingerprint == vgg_file.key.fingerprint
        assert served.class_names == ("rows", "columns", "chequers", "cross")
        assert asked(server.http, "GET", f"{path}/ready")[0] == 200


def test_plain_json_and_binary_tensors_get_the_same_answer(server, vgg_file):
    rows = mole.morph(vgg_file.layer.plain(vgg_file.images[:3]), vgg_file.key)
    expected = vgg_file.torch(rows)
    body = request(id="seven", tensor={"shape": [3, 1, 12, 12], "data": rows.reshape(3, -1).tolist()})
    status, _, content = asked(server.http, "POST", "/v2/models/vgg/infer", body)
    answer = json.loads(content)
    assert (status, answer["id"], answer["model_name"]) == (200, "seven", "vgg")
    assert answer["outputs"][0]["shape"] == [3, 4]
    assert np.allclose(np.reshape(answer["outputs"][0]["data"], (3, 4)), expected, atol=1e-5)
    packed, length = pack(Message((Tensor.of("morphed", rows),), is_binary=True), "inputs", binary=True)
    status, headers, content = asked(
        server.http, "POST", "/v2/models/vgg/versions/1/infer", packed, **{LENGTH_HEADER: str(length)}
    )
    assert status == 200
    raw = content[int(headers[LENGTH_HEADER]) :]
    assert np.allclose(np.frombuffer(raw, "<f4").reshape(3, 4), expected, atol=1e-5)


REFUSED = {
    "another key": (request(parameters={"key_fingerprint": "0" * 32}), 400, "use that key"),
    "a shape": (request(tensor={"shape": [1, 12, 12]}), 400, r"send \(rows, 1, 12, 12\), morphed"),
    "no rows": (request(tensor={"shape": [0, 1, 12, 12], "data": []}), 400, "send 1 to 4096 at a time"),
    "a datatype": (request(tensor={"datatype": "UINT8"}), 400, "is UINT8: send FP32"),
    "a name": (request(tensor={"name": "image"}), 400, "send one, called 'morphed'"),
    "an output": (request(outputs=[{"name": "logits"}]), 400, "ask for 'probabilities'"),
    "too few numbers": (request(tensor={"data": [0.5] * 143}), 400, "send as many numbers"),
    "text": (request(tensor={"data": ["0.5"] * 144}), 400, "something else than numbers"),
    "uneven": (request(tensor={"data": [[1], [1, 2]]}), 400, "several lengths"),
    "not a number": (request().replace(b"0.5", b"NaN", 1), 400, "send finite numbers"),
    "too large a number": (request().replace(b"0.5", b"1e39", 1), 400, "send finite numbers"),
    "no probabilities": (request(tensor={"data": [3e38] * 144}), 400, "no probabilities for these numbers"),
    "no JSON": (b"{", 400, "not JSON"),
    "deep JSON": (b"[" * 100_000, 400, "not JSON"),
    "long JSON": (b" " * (9 << 20), 400, "as binary data"),
    "too large": (b" " * (65 << 20), 413, "send fewer rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_to_do(server, name):
    body, status, words = REFUSED[name]
    found, _, content = asked(server.http, "POST", "/v2/models/vgg/infer", body)
    assert found == status
    assert re.search(words, json.loads(content)["error"])
    assert asked(server.http, "POST", "/v2/models/vgg/infer", request())[0] == 200


def test_unknown_places(server):
    assert asked(server.http, "POST", "/v2/models/other/infer", request())[0] == 404
    assert asked(server.http, "GET", "/v2/models/vgg/versions/2")[0] == 404
    assert asked(server.http, "GET", "/v2/models/vgg/infer")[0] == 405
    assert asked(server.http, "POST", "/v2/repository/models/vgg/unload")[0] == 404
    assert json.loads(asked(server.http, "GET", "/")[2])["error"]


def test_metrics_count(server):
    asked(server.http, "POST", "/v2/models/vgg/infer", request())
    before = asked(server.http, "GET", "/metrics")[2].decode()
    asked(server.http, "POST", "/v2/models/vgg/infer", b"{")
    after = asked(server.http, "GET", "/metrics")[2].decode()
    name = 'mole_requests_total{outcome="invalid",protocol="http"} '
    assert number(after, name) == number(before, name) + 1
    assert number(after, "mole_rows_total ") == number(before, "mole_rows_total ") > 0


def number(text: str, name: str) -> float:
    found = [line for line in text.splitlines() if line.startswith(name)]
    return float(found[0].removeprefix(name)) if found else 0.0


def test_grpc_refuses_in_its_own_way(server):
    channel = GrpcChannel(Address.of(server.grpc, None, None, 30))
    with pytest.raises(mole.MoleError, match=r"INVALID_ARGUMENT.*use that key"):
        channel.infer(
            "vgg", Message((Tensor.of("morphed", ROWS),), parameters={"key_fingerprint": "0" * 32})
        )
    with pytest.raises(mole.MoleError, match=r"INVALID_ARGUMENT.*send \(rows, 1, 12, 12\)"):
        channel.infer("vgg", Message((Tensor.of("morphed", ROWS[..., :11]),)))
    with pytest.raises(mole.MoleError, match=r"NOT_FOUND.*ask for 'vgg'"):
        channel.infer("other", Message((Tensor.of("morphed", ROWS),)))
    with pytest.raises(mole.MoleError, match="RESOURCE_EXHAUSTED"):
        channel.infer("vgg", Message((Tensor.of("morphed", np.zeros((1 << 17, 144), np.float32)),)))
    assert channel.infer("vgg", Message((Tensor.of("morphed", ROWS),))).tensor("probabilities").shape == (
        2,
        4,
    )
    channel.close()


def test_contents_beside_raw_ones_must_be_empty():
    """Some servers, such as MLServer, send an empty message there."""
    answer = to_response(Message((Tensor.of("probabilities", ROWS),)))
    answer.outputs[0].contents.SetInParent()
    assert (from_response(answer).tensor("probabilities").floats() == ROWS).all()
    answer.outputs[0].contents.fp32_contents.append(1.0)
    with pytest.raises(FormatError, match="raw contents and others"):
        from_response(answer)


@pytest.mark.parametrize(("there", "asked"), [("grpc", "http"), ("http", "grpc")])
def test_the_port_of_the_other_protocol_is_told_at_once(server, there, asked):
    place = getattr(server, there).partition("://")[2]
    with pytest.raises(ServerError, match=f"does not speak .*, write {there}://{place}$") as told:
        mole.Client(f"{asked}://{place}", mole.MorphKey.generate((1, 4, 4)), patience=3600).predict(
            np.zeros((1, 1, 4, 4), np.float32)
        )
    assert type(told.value) is ServerError  # nothing to try again


@pytest.fixture(scope="module")
def batching(vgg_file):
    """A server that puts requests together."""
    with serving(vgg_file.file, "--batch-rows", 64, "--threads", 1) as running:
        yield running


def ask(url: str, rows: np.ndarray) -> np.ndarray:
    channel = HttpChannel(Address.of(url, None, None, 60))
    answer = channel.infer("vgg", Message((Tensor.of("morphed", rows),), is_binary=True))
    channel.close()
    return answer.tensor("probabilities").floats()


def working(running: Running) -> float:
    return number(asked(running.http, "GET", "/metrics")[2].decode(), "mole_requests_working ")


def counted(running: Running) -> tuple[float, float]:
    """How often the network ran, and how many requests were answered."""
    metrics = asked(running.http, "GET", "/metrics")[2].decode()
    answered = number(metrics, 'mole_requests_total{outcome="answered",protocol="http"} ')
    return number(metrics, "mole_batches "), answered


def test_requests_that_are_computed_together_get_their_own_answers(batching, vgg_file):
    """While the only thread has much to do, the others have to wait."""
    rows = [np.full((1 + place % 5, 1, 12, 12), place / 10, np.float32) for place in range(32)]
    before = counted(batching)
    with ThreadPoolExecutor(17) as pool:
        much = [pool.submit(ask, batching.http, MANY)]
        while not working(batching):
            if much[-1].done():  # before we could see it
                much[-1].result()
                much.append(pool.submit(ask, batching.http, MANY))
        found = list(pool.map(lambda some: ask(batching.http, some), rows))
    for some, answer in zip(rows, found, strict=True):
        assert np.allclose(answer, vgg_file.torch(some), atol=1e-5)
    batches, answered = np.subtract(counted(batching), before)
    assert batches - len(much) < len(rows) - 1
    assert answered == len(much) + len(rows)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_server_finishes_what_it_is_at_before_it_stops(vgg_file, end):
    running = start(vgg_file.file, "--threads", 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, running.http, MANY)
        while not working(running):
            if waiting.done():  # before we could see it
                waiting.result()
                waiting = pool.submit(ask, running.http, MANY)
        assert stop(running, end) == (0, "")
        answer = waiting.result()
    assert len(answer) == len(MANY)
    assert np.allclose(answer[:9], vgg_file.torch(MANY[:9]), atol=1e-5)


def test_a_port_that_is_taken_is_said(server, vgg_file):
    for port, grpc_port in ((port_of(server.http), 0), (0, port_of(server.grpc))):
        with pytest.raises(AssertionError, match=r"cannot be listened on: .*choose another port"):
            start(vgg_file.file, port=port, grpc_port=grpc_port)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_elsewhere_only_with_tls_and_a_token(vgg_file):
    with (
        pytest.raises(AssertionError, match="can be reached from elsewhere"),
        serving(vgg_file.file, "--host", "0.0.0.0"),
    ):
        pass
