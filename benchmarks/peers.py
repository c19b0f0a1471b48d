"""What a first layer costs with what one would use instead: encrypted (TenSEAL) and shared (CrypTen).

The same layer for all: 3x3, 64 channels, padding 1, on an image of 3x32x32. Each peer runs in an
environment of its own, which is made in a temporary folder (or in --environments, and kept); so the
network is needed. All is counted in processor seconds of one thread, for one image, in batches that suit
each; bytes are those that leave a party. Time on the wire is not counted. Peers guarantee what morphing
does not: the result says what.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import mole
from common import write_result
from mole.torch import attach
from vgg import INPUT_SHAPE, vgg_layer

HERE = Path(__file__).parent
BATCH, ROUNDS = 64, 7
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
TORCH = f"torch=={torch.__version__.partition('+')[0]}"
CRYPTEN_NEEDS = ["omegaconf", "onnx", "scipy", "scikit-learn", "pandas", "pyyaml", "tensorboard", "future"]
INSTALLS: dict[str, list[list[str]]] = {
    "tenseal": [["tenseal==0.3.18", "numpy"]],
    "crypten": [[TORCH, *CRYPTEN_NEEDS], ["--no-deps", "crypten==0.4.1"]],
}
GUARANTEES = {
    "tenseal": "the developer computes on ciphertexts and learns nothing of an image (128-bit security); "
    "only the provider can read the result",
    "crypten": "neither party sees the other's numbers, if the two do not collude, follow the protocol and "
    "trust whoever makes the triples; both compute for every image",
    "mole": "nothing against the developer, who can get the images back; unreadable to the eye for others",
}


def environment(name: str, folder: Path) -> Path:
    """The Python of a peer's environment, made if it is not there."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        venv.create(folder / name, with_pip=True)
        for packages in INSTALLS[name]:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def peer(name: str, folder: Path) -> dict[str, Any]:
    """What a peer's own program measures."""
    program = HERE / f"peer_{name}.py"
    done = subprocess.run(
        [environment(name, folder), program],
        env=ONE_THREAD,
        capture_output=True,
        text=True,
        check=True,
    )
    return {**json.loads(done.stdout.splitlines()[-1]), "guarantees": GUARANTEES[name]}


def processor_seconds(work: Callable[[], object]) -> float:
    """Of one image in a batch: the median of a few rounds, after one that does not count."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times[1:]) / BATCH


def ours(**options: Any) -> dict[str, Any]:
    """Morphing at the provider's, the augmented layer at the developer's, and the plain layer."""
    layer = vgg_layer()
    key = mole.MorphKey.generate(INPUT_SHAPE, tile=options.pop("tile", None))
    plain = nn.Conv2d(3, 64, 3, padding=1)
    plain.load_state_dict({"weight": torch.tensor(layer.weight), "bias": torch.tensor(layer.bias)})
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1))
    augmented = mole.augment(layer, key, **options)
    attach(model, augmented)
    images = np.random.default_rng(0).normal(size=(BATCH, *INPUT_SHAPE)).astype(np.float32)
    morphed, batch = torch.from_numpy(mole.morph(images, key)), torch.from_numpy(images)
    with torch.inference_mode():
        expected = plain(batch)[:, key.channel_order(64)]
        error = float((model(morphed) - expected).norm() / expected.norm())
        developer = processor_seconds(lambda: model(morphed))
        bare = processor_seconds(lambda: plain(batch))
    return {
        "images_at_once": BATCH,
        "provider_s": processor_seconds(lambda: mole.morph(images, key)),
        "developer_s": developer,
        "plain_s": bare,
        "bytes": images[0].nbytes,
        "bytes_in_8_bits": images[0].size,
        "bytes_of_layer_once": augmented.nbytes,
        "error": error,
        "guarantees": GUARANTEES["mole"],
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, help="where the peers are installed, or will be")
    parser.add_argument("--without-peers", action="store_true", help="ours only, and write no result")
    arguments = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # read when NumPy is loaded: begin again
        os.execve(sys.executable, [sys.executable, *sys.argv], ONE_THREAD)  # noqa: S606
    results: dict[str, Any] = {"tiles of 8": ours(tile=8)}
    if find_spec("mole.scheme.factored") is not None:
        results["rows, factored"] = ours(form="factored")
        results["rows"] = ours(form="dense")
    else:
        results["rows"] = ours()
    if arguments.without_peers:
        print(json.dumps(results, indent=1))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in INSTALLS:
            results[name] = peer(name, arguments.environments or Path(folder))
    tiles = results["tiles of 8"]["provider_s"] + results["tiles of 8"]["developer_s"]
    for result in results.values():
        whole = result["provider_s"] + result["developer_s"]
        result["times_tiles_of_8"] = round(whole / tiles, 1)
    write_result("peers", {"layer": "3x3, 64 channels, on 3x32x32", "threads": 1, "results": results})


if __name__ == "__main__":
    main()
