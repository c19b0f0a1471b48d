"""From a protected delivery to answers of a server, as commands of both roles, and what goes wrong."""

import json
import shutil
import stat

import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper

import mole
from command import call, files_in, right
from fronts import feature_key
from heads import turning_layer, write_classes, write_telling_front
from mole.exchange.inference_messages import Message, Tensor
from mole.exchange.served_model import read_served
from mole.torch import CheckpointFacts, save_checkpoint
from mole.torch.networks import build_network
from played import played
from secrets_kept import DEVELOPER, RECIPIENT
from served import Running, serving

OURS = ("--layer", "layer.safetensors", "--key", "provider.key", "--identity", "me")
PROTECTED = ("--front", "front.onnx", "--bits", "40")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all that both have, up to the file that is served."""
    folder = tmp_path_factory.mktemp("serving")
    write_classes(folder / "photos.npz", train=300, test=60)
    write_classes(folder / "more.npz", train=90, test=1, seed=1)
    write_telling_front(folder / "front.onnx")
    mole.save(turning_layer(), folder / "layer.safetensors")
    feature_key().save(folder / "provider.key", recipients=[RECIPIENT])
    feature_key(seed=1).save(folder / "other.key", recipients=[RECIPIENT])
    (folder / "me").write_text(str(DEVELOPER) + "\n")
    right("deliver", "photos.npz", *OURS, *PROTECTED, cwd=folder)
    right("train", "delivery", "--out", "trained.safetensors", cwd=folder)
    right("export", "trained.safetensors", "--delivery", "delivery", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def running(place) -> Running:
    with serving(place / "model.onnx") as server:
        yield server


def wrong(*arguments, cwd):
    """What is said of a call that must not work, and leaves everything as it was."""
    before = files_in(cwd)
    done = call(*arguments, cwd=cwd)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith("mole: ")
    assert files_in(cwd) == before
    return done.stderr


def test_what_is_exported_says_what_it_takes(place):
    told = right("info", "model.onnx", cwd=place)
    assert (told["what"], told["input"], told["input shape"]) == ("network to serve", "morphed", [12])
    assert told["key fingerprint"] == feature_key().fingerprint
    images = read_served(place / "model.onnx").facts.images
    assert images.clip == 1.0
    assert images.layer_fingerprint == turning_layer().fingerprint
    assert "exists already" in wrong("export", "trained.safetensors", cwd=place)


def test_protected_requests_are_answered_and_counted(place, running, tmp_path):
    asked = ("predict", "more.npz", "--url", running.grpc, *OURS, *PROTECTED)
    told = right(*asked, "--budget", "50", "--out", tmp_path / "found.parquet", cwd=place)
    assert (told["rows"], told["server"]) == (91, running.grpc)
    table = pq.read_table(tmp_path / "found.parquet")
    assert table.column_names == ["split", "name", "prediction", "probability", "label"]
    assert np.allclose(np.stack(table["probability"].to_numpy()).sum(1), 1, atol=1e-4)
    assert told["accuracy"] > 0.85  # fresh noise leaves 0.985, give or take 0.012; one class alone has 0.67
    ledger = right("ledger", "provider.key", "--identity", "me", cwd=place)
    assert (ledger["rows in requests"], ledger["requests without an answer"]) == (91, 0)
    assert ledger["bits given away"] == pytest.approx(40)
    assert all(one["bits"] == pytest.approx(40) for one in ledger["requests by id"])
    said = wrong(*asked, "--budget", "50", "--out", tmp_path / "again.parquet", cwd=place)
    assert "would have given away up to 80 bits" in said
    after = right("ledger", "provider.key", "--identity", "me", cwd=place)
    assert after["requests"] == ledger["requests"]


def both_alike(request: Message) -> Message:
    rows = request.tensors[0].floats()
    return Message((Tensor.of("probabilities", np.full((len(rows), 2), 0.5, np.float32)),), request.id)


def test_what_was_answered_is_kept_until_the_rest_is(place, tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))  # bits of its own
    (mine := tmp_path / "mine").mkdir()
    for name in ("more.npz", "front.onnx", "layer.safetensors", "provider.key", "me"):
        shutil.copy(place / name, mine)
    (found := tmp_path / "found").mkdir()
    out, unfinished = found / "found.parquet", found / "found.parquet.unfinished"
    facts = read_served(place / "model.onnx").facts
    with played([both_alike, 503, 400], facts, otherwise=both_alike) as (url, _):
        asked = ("predict", "more.npz", "--url", url, *OURS, *PROTECTED, "--out", out)
        done = call(*asked, cwd=mine)
        assert done.returncode == 1
        assert f"mole: note: the answers that came are in {unfinished}; the same command" in done.stderr
        assert "refuses (400): not now" in done.stderr
        assert files_in(found) == {unfinished.name}
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        done = call(*asked, "--json", cwd=mine)
    assert done.returncode == 0
    assert f"to an earlier call are taken from {unfinished}" in done.stderr
    assert json.loads(done.stdout)["rows"] == 91
    assert files_in(found) == {out.name}


MISTAKES = {
    (
        "--key",
        "other.key",
        "--layer",
        "layer.safetensors",
        "--identity",
        "me",
        *PROTECTED,
    ): "takes data of key",
    (*OURS,): "trained on protected features",
    (*OURS, "--served-name", "other"): "ask for 'model': give --served-name",
    ("--key", "provider.key"): "add --layer",
    (*OURS, "--checkpoint", "x"): "--checkpoint does not go with --url",
    (
        *OURS,
        *PROTECTED,
        "--clip",
        "2",
    ): "length of 1.0, and those of requests are clipped to 2.0: give --clip",
    (*OURS, "--clip", "2"): "--clip is for protected deliveries: add --front",
    (*OURS, "--budget", "5"): "--budget is for protected deliveries: add --front",
}


@pytest.mark.parametrize("options", MISTAKES)
def test_mistakes_are_said_before_anything_is_sent(place, running, options):
    assert MISTAKES[options] in wrong("predict", "more.npz", "--url", running.http, *options, cwd=place)


def test_other_mistakes(place, tmp_path):
    assert "--clip is for predictions by a server: add --url" in wrong(
        "predict", "more.npz", "--clip", "2", cwd=place
    )
    assert "add --url, or leave it out" in wrong("predict", "delivery", "--key", "provider.key", cwd=place)
    assert "is another machine: use https" in wrong(
        "predict", "more.npz", "--url", "http://192.0.2.1", *OURS, *PROTECTED, cwd=place
    )
    assert wrong("serve", "model.onnx", "--host", "0.0.0.0", cwd=place).endswith(
        "with TLS and a token: give --certificate and --private-key and --token-file\n"
    )
    assert "not a network to serve" in wrong("serve", "front.onnx", cwd=place)
    assert "is not an ONNX file" in wrong("serve", "trained.safetensors", cwd=place)
    plain = build_network("linear_head", (12,), 2)
    save_checkpoint(tmp_path / "plain.safetensors", plain, CheckpointFacts("linear_head", (12,), 2))
    assert "has no augmented layer" in wrong(
        "export", tmp_path / "plain.safetensors", "--out", "new.onnx", cwd=place
    )


@pytest.mark.parametrize("change", ["loop", "domain", "shape", "key", "elsewhere"])
def test_a_hostile_file_is_not_served(place, tmp_path, change):
    model = onnx.load(place / "model.onnx")
    if change == "loop":
        model.graph.node.append(helper.make_node("Loop", ["", ""], ["x"], body=model.graph))
    elif change == "domain":
        model.graph.node[0].domain = "com.microsoft"
    elif change == "shape":
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 13
    elif change == "key":
        (entry,) = [one for one in model.metadata_props if one.key == "mole-model"]
        entry.value = json.dumps(json.loads(entry.value) | {"key_fingerprint": "../../etc"})
    else:
        model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    (tmp_path / "hostile.onnx").write_bytes(model.SerializeToString())
    said = wrong("serve", tmp_path / "hostile.onnx", cwd=place)
    assert "cannot be used as a network to serve" in said or "not a network to serve" in said
