"""Models of Hugging Face on a delivery: trained by their Trainer, saved, loaded again."""

import logging
import shutil
import stat

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import mole
from deliveries import make_key, write_npz
from mole.errors import FileError, MoleError, ParameterError
from mole.exchange.delivery import AUGMENTED
from mole.torch import (
    MorphedDataset,
    attach,
    evaluate,
    export_first_layer,
    load_checkpoint,
    load_pretrained,
    predict,
    save_checkpoint,
    save_pretrained,
    train,
)
from mole.torch.checkpoint import CheckpointFacts
from mole.torch.module import augmented_part

transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers")
SHAPE = (3, 8, 8)
NAME = "resnet.embedder.embedder.convolution"


def resnet(seed=0):
    torch.manual_seed(seed)
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", num_labels=10
    )
    return transformers.ResNetForImageClassification(config)


def vit(seed=0):
    torch.manual_seed(seed)
    config = transformers.ViTConfig(
        image_size=8, patch_size=4, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=10,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


def delivered(folder, model, seed=0):
    data = write_npz(folder / "data.npz", train=48, test=20)
    layer = export_first_layer(model, SHAPE)
    return mole.deliver(data, layer, make_key(seed), folder / "delivery", dtype="int8").delivery


@pytest.fixture(scope="module")
def delivery(tmp_path_factory):
    return delivered(tmp_path_factory.mktemp("resnet"), resnet())


@pytest.fixture(scope="module")
def of_another_key(tmp_path_factory):
    return delivered(tmp_path_factory.mktemp("other"), resnet(), seed=1)


@pytest.fixture(scope="module")
def saved(delivery, tmp_path_factory):
    """A trained model, and the folder that it was saved in."""
    model = resnet(1)
    attach(model, delivery.layer())
    train(model, MorphedDataset(delivery, as_dict=True), epochs=1)
    folder = tmp_path_factory.mktemp("saved") / "model"
    save_pretrained(model, folder)
    return model.eval(), folder


def answers(model, delivery):
    samples = torch.stack([item["pixel_values"] for item in MorphedDataset(delivery, "test", as_dict=True)])
    with torch.inference_mode():
        return model.eval()(samples).logits


def changed(folder, tmp_path, change):
    """A copy of a saved model whose tensors were changed."""
    shutil.copytree(folder, tmp_path / "changed")
    path = tmp_path / "changed" / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"format": "pt"})
    return tmp_path / "changed"


@pytest.mark.parametrize(("make", "in_state_dict"), [(resnet, True), (vit, False)])
def test_their_trainer_trains_saves_and_loads_again(tmp_path, make, in_state_dict):
    pytest.importorskip("accelerate", reason="their Trainer needs accelerate")
    delivery = delivered(tmp_path, make())
    model = make(1)
    attach(model, delivery.layer(), in_state_dict=in_state_dict)
    parts = [MorphedDataset(delivery, split, as_dict=True) for split in ("train", "test")]
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"), num_train_epochs=2, per_device_train_batch_size=16, save_strategy="epoch",
        eval_strategy="epoch", load_best_model_at_end=True, report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    before = answers(model, delivery)
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=parts[0], eval_dataset=parts[1]
    )
    trainer.train()
    expected = answers(model, delivery)
    assert not torch.allclose(before, expected)
    found = torch.from_numpy(trainer.predict(parts[1]).predictions)
    assert torch.allclose(found, expected, atol=1e-6)

    kept = tmp_path / "out" / "checkpoint-6"
    weight = f"{augmented_part(model).name}.weight"
    (numbers,) = (
        tensor.numel()
        for name, tensor in load_file(kept / "model.safetensors").items()
        if weight.endswith(name) or name.endswith(weight)
    )
    assert numbers == (delivery.layer().weight.size if in_state_dict else 0)
    best = load_pretrained(type(model), trainer.state.best_model_checkpoint, delivery)
    assert torch.allclose(answers(best, delivery), expected, atol=1e-6)

    save_pretrained(model, tmp_path / "saved")
    again = load_pretrained(type(model), tmp_path / "saved", delivery.label)
    assert torch.allclose(answers(again, delivery), expected, atol=1e-6)
    assert evaluate(again, parts[1]).loss == pytest.approx(trainer.evaluate()["eval_loss"], abs=1e-4)

    fresh = make(2)
    attach(fresh, delivery.layer(), in_state_dict=in_state_dict)
    arguments.num_train_epochs = 3
    resumed = transformers.Trainer(
        model=fresh, args=arguments, train_dataset=parts[0], eval_dataset=parts[1]
    )
    resumed.train(resume_from_checkpoint=str(kept))
    assert resumed.state.global_step == 9
    assert torch.equal(augmented_part(fresh).module.weight, augmented_part(model).module.weight)


def test_a_round_trip_gives_the_same_model(delivery, saved, caplog):
    model, folder = saved
    for given in (delivery, delivery.label, delivery.layer()):
        with caplog.at_level(logging.WARNING):
            again = load_pretrained(type(model), folder, given)
        assert not again.training
        assert torch.equal(answers(again, delivery), answers(model, delivery))
        assert predict(again, MorphedDataset(delivery, "test")).num_rows == 20
    assert caplog.text == ""
    assert not torch.allclose(answers(resnet(), delivery), answers(model, delivery))


def test_the_layer_is_left_out_or_lies_beside(delivery, saved, tmp_path):
    model, folder = saved
    assert load_file(folder / "model.safetensors")[f"{NAME}.weight"].shape == (0,)
    assert not (folder / AUGMENTED).exists()
    save_pretrained(model, tmp_path / "full", with_layer=True)
    again = load_pretrained(type(model), tmp_path / "full")
    assert torch.equal(answers(again, delivery), answers(model, delivery))
    kept, sent = mole.load(tmp_path / "full" / AUGMENTED), delivery.layer()
    assert np.array_equal(kept.matrix, sent.matrix)
    assert (kept.geometry, kept.normalisation, kept.kappa) == (
        sent.geometry,
        sent.normalisation,
        sent.kappa,
    )
    assert augmented_part(model).module.in_state_dict  # as it was
    for path in (tmp_path / "full", *(tmp_path / "full").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_their_own_loading_refuses_it(saved):
    model, folder = saved
    with pytest.raises(RuntimeError, match="mismatch"):
        type(model).from_pretrained(folder)


def test_what_cannot_be_loaded_is_a_sentence(delivery, of_another_key, saved, tmp_path):
    model, folder = saved
    cls = type(model)
    with pytest.raises(FileError, match=r"does not hold the augmented layer: give delivery="):
        load_pretrained(cls, folder)
    with pytest.raises(
        FileError, match=r"was trained with the augmented layer of key .* and this one is of"
    ):
        load_pretrained(cls, folder, of_another_key)
    with pytest.raises(FileError, match="is not a folder that a model was saved in"):
        load_pretrained(cls, tmp_path / "nowhere", delivery)
    resnet().save_pretrained(tmp_path / "plain")
    with pytest.raises(FileError, match="holds no model with an augmented layer"):
        load_pretrained(cls, tmp_path / "plain", delivery)
    with pytest.raises(FileError, match=r"does not hold a ResNetForImageClassification .*classifier"):
        load_pretrained(
            cls, changed(folder, tmp_path, lambda tensors: tensors.pop("classifier.1.weight")), delivery
        )
    with pytest.raises(ParameterError, match="Linear is not a Hugging Face model"):
        load_pretrained(nn.Linear, folder, delivery)
    (tmp_path / "changed" / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(FileError, match="is damaged"):
        load_pretrained(cls, tmp_path / "changed", delivery)


@pytest.mark.parametrize(
    "key_id",
    [
        torch.tensor(1 << 62),
        torch.tensor(5, dtype=torch.uint8),
        torch.arange(16),
        torch.zeros(17, dtype=torch.uint8),
        torch.zeros((16, 16), dtype=torch.uint8),
    ],
)
def test_a_fingerprint_is_never_taken_for_a_length(delivery, saved, tmp_path, key_id):
    model, folder = saved

    def change(tensors):
        (name,) = (name for name in tensors if name.endswith(".key_id"))
        tensors[name] = key_id

    with pytest.raises(FileError, match=r"model\.safetensors is damaged: its key_id is .* of shape"):
        load_pretrained(type(model), changed(folder, tmp_path, change), delivery)


def test_what_cannot_be_saved_is_a_sentence(saved, delivery, tmp_path):
    model, folder = saved
    before = sorted(folder.iterdir())
    with pytest.raises(FileError, match="exists already: choose another name"):
        save_pretrained(model, folder)
    assert sorted(folder.iterdir()) == before
    with pytest.raises(ParameterError, match="has no augmented layer"):
        save_pretrained(resnet(), tmp_path / "new")
    plain = nn.Sequential(nn.Conv2d(3, 4, 7, stride=2, padding=3, bias=False))
    attach(plain, delivery.layer())
    with pytest.raises(ParameterError, match="is not a Hugging Face model"):
        save_pretrained(plain, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def small(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 4, 7, stride=2, padding=3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10)
    )


def attached(delivery):
    model = small()
    attach(model, delivery.layer())
    return model


def test_any_state_dict_can_leave_the_layer_out(delivery, of_another_key, tmp_path):
    model, other = small(1), small(2)
    for one in (model, other):
        attach(one, delivery.layer(), in_state_dict=False)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    state = torch.load(tmp_path / "model.pt", weights_only=True)
    assert sum(tensor.numel() for tensor in state.values()) < 1000
    samples = torch.randn(2, *SHAPE)
    assert not torch.equal(model(samples), other(samples))
    other.load_state_dict(state)
    assert torch.equal(model(samples), other(samples))
    with pytest.raises(RuntimeError, match=r"size mismatch for 0\.weight"):
        small().load_state_dict(state)
    foreign = attached(of_another_key)
    with pytest.raises(RuntimeError, match=r"'0\.weight' was left out, and is of another key"):
        foreign.load_state_dict(state)


def test_checkpoints_of_our_own_hold_the_layer_all_the_same(delivery, tmp_path):
    model = small(1)
    attach(model, delivery.layer(), in_state_dict=False)
    save_checkpoint(tmp_path / "m.safetensors", model, CheckpointFacts("mine", SHAPE, 10))
    again = load_checkpoint(tmp_path / "m.safetensors", small()).model
    samples = torch.randn(2, *SHAPE)
    assert torch.allclose(model(samples), again(samples), atol=1e-6)


def test_items_as_dictionaries(delivery, tmp_path):
    pairs, dictionaries = (MorphedDataset(delivery, "test", as_dict=way) for way in (False, True))
    for (sample, label), item in zip(pairs, dictionaries, strict=True):
        assert list(item) == ["pixel_values", "labels"]
        assert torch.equal(item["pixel_values"], sample)
        assert item["labels"] == label
    model = attached(delivery)
    assert evaluate(model, pairs) == evaluate(model, dictionaries)
    bare = mole.deliver(
        write_npz(tmp_path / "d.npz", train=4, test=0), export_first_layer(small(), SHAPE), make_key(2),
        tmp_path / "d", labels=False,
    ).delivery  # fmt: skip
    assert list(MorphedDataset(bare, as_dict=True)[0]) == ["pixel_values"]
    with pytest.raises(MoleError, match="has no labels"):
        evaluate(attached(bare), MorphedDataset(bare, as_dict=True))
