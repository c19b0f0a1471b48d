"""Photos morphed in tiles: a ResNet sees the features of plain ones, and learns the same from them."""

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import mole
from mole.provider.row_numbers import RowNumbers
from mole.torch import MorphedDataset, attach, export_first_layer, train
from photos import MEAN, STD, needs_photos, read_plain, some_further_photos, write_photos

transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers")
STEM = "resnet.embedder.embedder.convolution"  # 7x7, stride 2


def resnet() -> nn.Module:
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=10
    )
    return transformers.ResNetForImageClassification(config)


class Case:
    """A folder of photos, delivered in tiles, and the same photos plain in the order of the delivery."""

    def __init__(self, folder, data) -> None:
        shape = tuple(read_plain(data, "val")[0].shape[1:])
        layer = export_first_layer(resnet(), shape, mean=MEAN, std=STD)
        sample = read_plain(data, "train")[0].numpy()
        self.key = mole.MorphKey.generate(
            shape, tile=8, core="whitened", sample=sample, insecure_seed=bytes(32)
        )
        self.delivery = mole.deliver(
            data, layer, self.key, folder / "delivery", mode="RGB", class_names=True
        ).delivery
        self.morphed = {split: MorphedDataset(self.delivery, split) for split in ("train", "val")}
        self.plain = {split: self.in_delivered_order(data, split) for split in ("train", "val")}

    def in_delivered_order(self, data, split) -> TensorDataset:
        plain, labels = read_plain(data, split)
        rows = self.morphed[split]
        order = RowNumbers.of(self.delivery, self.key, split).samples_of(rows.row_ids)
        twin = TensorDataset(plain[order], labels[order])
        twin.sampler = rows.sampler  # so that training meets them in the same order
        return twin

    def network(self) -> nn.Module:
        """The developer's: with the layer that came."""
        model = resnet()
        attach(model, self.delivery.layer())
        return model

    def twin(self, order=None) -> nn.Module:
        """The same for plain photos: its first layer is frozen, with its channels in the key's order."""
        model = resnet()
        weight = model.get_submodule(STEM).weight
        weight.data = weight.data[self.key.channel_order(len(weight)) if order is None else order]
        weight.requires_grad_(False)
        return model


@pytest.fixture(scope="module", params=["bundled", pytest.param("further", marks=needs_photos)])
def case(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    if request.param == "bundled":
        return Case(folder, write_photos(folder / "data", side=64, train=48, val=15))
    return Case(folder, some_further_photos(folder / "data", train=6, val=2))


def stacked(data) -> torch.Tensor:
    return torch.stack([data[index][0] for index in range(len(data))])


def test_features_are_those_of_plain_photos(case):
    assert all(check.holds for check in mole.verify(case.delivery))
    with torch.inference_mode():
        features = case.network().get_submodule(STEM)(stacked(case.morphed["val"]))
        expected = case.twin().get_submodule(STEM)(stacked(case.plain["val"]))
        error = (features - expected).flatten(1).norm(dim=1) / expected.flatten(1).norm(dim=1)
        assert error.max() <= 1e-5
        other = torch.roll(expected, 1, dims=0)  # of another photo
        assert ((features - other).norm() / other.norm()) > 0.1


def test_a_network_learns_as_from_plain_photos(case):
    """Step by step the same, up to rounding: channels are in one order, and rows come in one order."""
    how = {"epochs": 2, "batch_size": 16, "learning_rate": 3e-3, "seed": 1}
    runs = [
        train(model, data["train"], validation=data["val"], **how)
        for model, data in (
            (case.network(), case.morphed),
            (case.twin(), case.plain),
            (case.twin(order=slice(None)), case.plain),
        )
    ]
    morphed, plain, unordered = (torch.tensor([epoch.loss for epoch in run]) for run in runs)
    assert torch.allclose(morphed, plain, rtol=1e-3)
    assert not torch.allclose(morphed, unordered, rtol=1e-3)  # another start, as another seed would be
    assert runs[0][-1].validation.loss == pytest.approx(runs[1][-1].validation.loss, rel=1e-3)
    assert morphed[1] < morphed[0]
