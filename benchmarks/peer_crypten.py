"""A first layer on shared images, with CrypTen. `peers.py` runs it in an environment of its own.

Party 0 has the images and party 1 the weights; neither sees the other's. Both run on one machine, with one
thread each. Multiplication triples come from CrypTen's trusted party, which costs nothing here and has to
be somebody in earnest. Prints JSON: processor seconds of both parties and bytes that both send for one
image, and the relative error.
"""

import importlib
import json
import statistics
import sys
import time

import torch

# CrypTen 0.4 looks for a module of PyTorch that has moved since.
sys.modules["torch.onnx._internal.registration"] = importlib.import_module(
    "torch.onnx._internal.torchscript_exporter.registration"
)

import crypten  # noqa: E402
import crypten.communicator as comm  # noqa: E402
from crypten.config import cfg  # noqa: E402
from crypten.mpc import run_multiprocess  # noqa: E402

IMAGES, CHANNELS, SIDE, ROUNDS = 16, 64, 32, 5


@run_multiprocess(world_size=2)  # type: ignore[untyped-decorator]
def measured() -> dict[str, float]:
    """What one party spends on one image: sharing it, and the first layer."""
    torch.set_num_threads(1)
    cfg.communicator.verbose = True
    torch.manual_seed(0)
    images = torch.randn(IMAGES, 3, SIDE, SIDE)
    weight = torch.randn(CHANNELS, 3, 3, 3)
    shared_weight = crypten.cryptensor(weight, src=1)
    sharing, layer, sent, rounds = [], [], 0, 0
    for _ in range(ROUNDS + 1):
        comm.get().reset_communication_stats()
        start = time.process_time()
        shared = crypten.cryptensor(images, src=0)
        middle = time.process_time()
        features = shared.conv2d(shared_weight, padding=1)
        layer.append(time.process_time() - middle)
        sharing.append(middle - start)
        stats = comm.get().get_communication_stats()
        sent, rounds = stats["bytes"], stats["rounds"]
    plain = features.get_plain_text()
    expected = torch.nn.functional.conv2d(images, weight, padding=1)
    return {
        "sharing_s": statistics.median(sharing[1:]) / IMAGES,
        "layer_s": statistics.median(layer[1:]) / IMAGES,
        "bytes": sent / IMAGES,
        "rounds": rounds,
        "error": float((plain - expected).norm() / expected.norm()),
    }


def main() -> None:
    """Measure, and print the result."""
    parties = measured()
    result = {
        "version": crypten.__version__,
        "images_at_once": IMAGES,
        "provider_s": parties[0]["sharing_s"] + parties[0]["layer_s"],
        "developer_s": parties[1]["sharing_s"] + parties[1]["layer_s"],
        "bytes": round(sum(party["bytes"] for party in parties)),
        "rounds": parties[0]["rounds"],
        "error": max(party["error"] for party in parties),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
