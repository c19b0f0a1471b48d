"""Networks that were trained on morphed signs, as ONNX."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import nn

import mole
from glyphs import CLASSES, SHAPE, glyphs
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.exchange.served_model import Images
from mole.torch import attach, export_first_layer, export_model
from mole.torch.networks import build_network
from mole.torch.running import logits_of


@dataclass(frozen=True)
class Trained:
    """A network that was trained on morphed signs, its file, and what the provider has."""

    file: Path
    model: nn.Module
    layer: mole.FirstLayer
    key: mole.MorphKey
    images: np.ndarray
    labels: np.ndarray

    def torch(self, morphed: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return torch.softmax(logits_of(self.model, torch.from_numpy(morphed)), 1).numpy()


def vgg() -> nn.Module:
    return build_network("small_vgg", SHAPE, len(CLASSES))


def resnet() -> nn.Module:
    config = transformers.ResNetConfig(
        num_channels=1, embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic",
        num_labels=4,
    )  # fmt: skip
    model = transformers.ResNetForImageClassification(config)
    model.resnet.embedder.embedder.convolution.stride = (1, 1)  # the signs are small
    model.resnet.embedder.pooler = nn.Identity()
    return model


def vit() -> nn.Module:
    config = transformers.ViTConfig(
        image_size=12, patch_size=4, num_channels=1, hidden_size=48, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=96, num_labels=4,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


NETWORKS = {"vgg": (vgg, {}, 3), "resnet": (resnet, {"tile": 4}, 4), "vit": (vit, {"tile": 4}, 25)}


def train(name: str, folder: Path, *, form: str | None = None) -> Trained:
    make, cut, epochs = NETWORKS[name]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = make()
    images, labels = glyphs(np.random.default_rng(1), 1200)
    layer = export_first_layer(model, SHAPE, mean=[0.5], std=[0.25])
    key = mole.MorphKey.generate(SHAPE, insecure_seed=bytes([3] * 32), **cut)
    attach(model, mole.augment(layer, key, form=form))
    rows = torch.from_numpy(mole.morph(layer.plain(images[:1000]), key))
    targets = torch.from_numpy(labels[:1000])
    optimizer = torch.optim.AdamW([part for part in model.parameters() if part.requires_grad], 4e-3)
    for _ in range(epochs):
        for some in torch.randperm(1000).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits_of(model, rows[some]), targets[some]).backward()
            optimizer.step()
    model.eval()
    facts = CheckpointFacts(name, SHAPE, 4, CLASSES)
    said = Images(layer.normalisation, layer_fingerprint=layer.fingerprint)
    export_model(model, facts, folder / f"{name}.onnx", images=said)
    return Trained(folder / f"{name}.onnx", model, layer, key, images[1000:], labels[1000:])
