"""The paper's comparison (Table 1), measured: MoLe, encrypted and shared computing, features with noise.

Instead of a chance to guess there is what attacks got. Beside the paper's methods stand protected
deliveries. What TenSEAL and CrypTen take is read from the result of the benchmark of peers, if that is
given; they are neither trained with nor attacked here.
"""

import json
from pathlib import Path

from mole.analysis import overhead
from mole.analysis.presets import VGG16_MACS
from mole.errors import FileError, ParameterError
from mole.experiments.compared_fronts import SIDE, ImageNetFeatures, check_large_network
from mole.experiments.compared_methods import TINY, Effort, Methods
from mole.experiments.experiment import Drawing, Experiment, Request, Result
from mole.experiments.table1_report import ALT, draw, report
from mole.scheme.shapes import element_count
from mole.storage.atomic import reason_of
from mole.torch.macs import count_macs

TILES = {"cpu": 8, "tiny": 4}
EFFORTS = {"cpu": Effort(), "tiny": TINY}
PEERS = {"tenseal": "homomorphic encryption, TenSEAL", "crypten": "secret sharing, CrypTen"}
VGG16_FEATURES = 276_480  # of all convolutions of VGG-16 at 32x32, the first layer's included
FIRST_LAYER = {"output_elements": 64 * 32**2, "kernel_elements": 27}  # of VGG-16, as the peers have it
PEERS_SHAPE = (3, 32, 32)  # of the images that peers were measured on
FLOAT = 4  # bytes


def measure(request: Request) -> Result:
    """Every method, a row for each."""
    if request.public is None:
        raise ParameterError("the comparison needs public images, from which the developer learns")
    effort = EFFORTS[request.preset]
    if effort.with_large:
        check_large_network()  # before anything is written
    peers = None if request.peers is None else _read(request.peers)
    images = request.data[0]
    methods = Methods(request, images, request.public, effort)
    plain = methods.plain_arm()
    elements = element_count(images.shape)
    rows: list[Result] = [{"method": "plain data", **plain, "bytes": elements}]
    rows += [_morphed(methods, peers, None), _morphed(methods, peers, TILES[request.preset])]
    rows += [_peer(name, peers) for name in PEERS if peers is not None]
    macs = overhead.first_layer_macs(
        output_elements=element_count(methods.layer.output_shape),
        kernel_elements=element_count(methods.layer.weight.shape[1:]),
    )
    for noise in effort.noises:
        found = methods.features_arm(noise)
        sent = {"bytes": FLOAT * found["values"], "provider_macs": macs}
        rows.append({"method": "features with noise", "noise": noise, **found, **sent})
    own, large = count_macs(methods.network[:-2], images.shape), None
    if effort.with_large:
        large = count_macs(ImageNetFeatures(), (3, SIDE, SIDE))
    for found in methods.protected():
        front = own if found["front"] == "the developer's network" else large
        rows.append(
            {"method": "protected", **found, "bytes": FLOAT * found["values"], "provider_macs": front}
        )
    return {
        "images": images.name, "train_images": len(methods.train[1]), "test_images": len(methods.test[1]),
        "public_images": len(methods.others[1]), "epochs": effort.epochs, "network": "small_vgg",
        "elements": elements, "network_macs": count_macs(methods.network, images.shape),
        "peers": None if peers is None else peers["machine"], "rows": rows,
    }  # fmt: skip


def _morphed(methods: Methods, peers: Result | None, tile: int | None) -> Result:
    """A delivery: in blocks of rows with a core as published, or in tiles."""
    elements = element_count(methods.images.shape)
    channels = methods.images.shape[0]
    side = elements if tile is None else channels * tile**2
    attacked = methods.attacked("gaussian" if tile is None else "whitened", tile)
    row: Result = {
        "method": "MoLe", "tile": tile, **methods.morphed_arm(tile), "bytes": elements,
        "bytes_once": attacked["layer_bytes"], "provider_macs": (elements // side) * side**2,
        "attacks": attacked,
    }  # fmt: skip
    if peers is None or methods.images.shape != PEERS_SHAPE:
        return row
    measured = peers["results"].get("rows" if tile is None else f"tiles of {tile}")
    return row if measured is None else {**row, **_milliseconds(measured)}


def _milliseconds(measured: Result) -> Result:
    """Processor time for the first layer and one image."""
    both = {"provider_ms": measured["provider_s"], "developer_ms": measured["developer_s"]}
    times = {name: float(f"{1000 * seconds:.3g}") for name, seconds in both.items()}
    return (
        {**times, "plain_ms": float(f"{1000 * measured['plain_s']:.3g}")}
        if "plain_s" in measured
        else times
    )


def _peer(name: str, peers: Result) -> Result:
    """What a peer takes for the first layer, and would take for the whole of VGG-16."""
    measured = peers["results"][name]
    seconds = measured["provider_s"] + measured["developer_s"]
    sent = measured["bytes"] + measured.get("bytes_of_features", 0)
    times = VGG16_MACS / overhead.first_layer_macs(**FIRST_LAYER)
    features = VGG16_FEATURES / FIRST_LAYER["output_elements"]
    return {
        "method": PEERS[name], "version": measured["version"], **_milliseconds(measured), "bytes": sent,
        "error": float(f"{measured['error']:.2g}"), "guarantees": measured["guarantees"],
        "whole_network_s": float(f"{seconds * times:.3g}"), "whole_network_bytes": round(sent * features),
    }  # fmt: skip


def _read(path: Path) -> Result:
    """The result of the benchmark of peers."""
    try:
        read = json.loads(path.read_text())
        if {*PEERS, "rows"} <= {*read["results"]} and read["machine"]:
            peers: Result = read
            return peers
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason_of(error)}") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise FileError(f"{path} is not a result of benchmarks/peers.py: give that JSON, or none")


EXPERIMENT = Experiment(
    summary="MoLe, encryption, noisy features and protected deliveries, compared",
    measure=measure,
    report=report,
    drawings={"": Drawing(draw, ALT)},
    presets=("cpu", "tiny"),
    takes=("data", "public", "seeds", "peers"),
    needs_public=True,
)
