"""PyTorch, onnxruntime and the server say the same of morphed requests; another key is worth nothing."""

import numpy as np
import pytest

import mole
from mole.errors import ServerError
from mole.exchange.inference_messages import Message, Tensor
from mole.protection.onnx_session import OnnxSession
from mole.provider.channels import Address
from mole.provider.http_channel import HttpChannel
from served import serving
from trained_signs import NETWORKS, train


@pytest.mark.parametrize("name", NETWORKS)
def test_torch_onnxruntime_and_server_agree(name, vgg_file, tmp_path):
    trained = vgg_file if name == "vgg" else train(name, tmp_path)
    morphed = mole.morph(trained.layer.plain(trained.images), trained.key)
    expected = trained.torch(morphed)
    assert np.abs(OnnxSession.open(trained.file)(morphed) - expected).max() < 1e-4
    with serving(trained.file) as running:
        for url in (running.http, running.grpc):
            with mole.Client(url, trained.key, trained.layer, model=name) as client:
                found = client.predict(trained.images)
            assert np.abs(found.probabilities - expected).max() < 1e-4
            assert (found.classes == expected.argmax(1)).all()
        assert (found.classes == trained.labels).mean() > 0.8
        assert (np.bincount(found.classes, minlength=4) > 0).all()
        other = mole.MorphKey.generate(
            trained.key.input_shape, insecure_seed=bytes([9] * 32), tile=trained.key.tile
        )
        wrong = ask_without_a_name(
            running.http, name, mole.morph(trained.layer.plain(trained.images), other)
        )
        assert abs((wrong.argmax(1) == trained.labels).mean() - 0.25) < 0.15
        with (
            pytest.raises(ServerError, match=f"takes data of key {trained.key.fingerprint}"),
            mole.Client(running.http, other, trained.layer, model=name) as client,
        ):
            client.predict(trained.images)


def ask_without_a_name(url: str, model: str, rows: np.ndarray) -> np.ndarray:
    """As any client may that says nothing of keys."""
    channel = HttpChannel(Address.of(url, None, None, 30))
    answer = channel.infer(model, Message((Tensor.of("morphed", rows),), is_binary=True))
    channel.close()
    return answer.tensor("probabilities").floats()
