"""Real architectures, small enough to train a step in a test."""

import torch
import transformers
from torch import nn

VGG16 = (16, 16, "M", 32, 32, "M", 64, 64, 64, "M", 128, 128, 128, "M", 128, 128, 128, "M")


def vgg16(classes: int = 10) -> nn.Module:
    """VGG-16 for 32x32 images, with its dropout, at a quarter of its width."""
    layers: list[nn.Module] = []
    channels = 3
    for width in VGG16:
        if width == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
    head = [nn.Flatten(), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, classes)]
    return nn.Sequential(*layers, *head)


def mlp(classes: int = 10) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, classes))


class ThreeAxes(nn.Module):
    """A volume, a 3-axis convolution with padding 'same' and an even kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 10)  # comes first among the attributes, runs last
        self.stem = nn.Conv3d(1, 6, (2, 3, 2), padding="same")

    def forward(self, volume: torch.Tensor) -> torch.Tensor:
        return self.head(self.stem(volume).relu().mean(dim=(2, 3, 4)))


def resnet() -> nn.Module:
    config = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=10
    )
    return transformers.ResNetForImageClassification(config)


def convnext() -> nn.Module:
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=10)
    return transformers.ConvNextForImageClassification(config)


def vit() -> nn.Module:
    config = transformers.ViTConfig(
        image_size=32,
        patch_size=8,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=10,
    )
    return transformers.ViTForImageClassification(config)


def mobilenet() -> nn.Module:
    """Pads its input itself before the first convolution, and reads that layer's stride to do so."""
    config = transformers.MobileNetV2Config(image_size=32, depth_multiplier=0.35, num_labels=10)
    return transformers.MobileNetV2ForImageClassification(config)


NETWORKS = {
    "resnet": (resnet, (3, 32, 32)),
    "convnext": (convnext, (3, 32, 32)),
    "vit": (vit, (3, 32, 32)),
    "mobilenet": (mobilenet, (3, 32, 32)),
    "vgg16": (vgg16, (3, 32, 32)),
    "mlp": (mlp, (1, 28, 28)),
    "three axes": (ThreeAxes, (1, 4, 6, 5)),
}


def logits(output: object) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else output.logits
