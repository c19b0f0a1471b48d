"""Networks as their authors wrote them, a fraction as wide: each does something unusual near its input."""

import math

import torch
import torch.nn.functional as F
import transformers
from torch import nn

VGG11 = (4, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M")


class WithClassifier(nn.Module):
    """Features, pooling to one size, and a classifier: torchvision's frame for AlexNet and VGG."""

    def __init__(self, features: nn.Module, pool: int, classifier: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((pool, pool))
        self.classifier = classifier

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def vgg11() -> nn.Module:
    """Its activations overwrite the features of the layer before."""
    layers: list[nn.Module] = []
    channels = 3
    for width in VGG11:
        if width == "M":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        else:
            layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
            channels = width
    head = nn.Sequential(
        nn.Linear(64 * 4, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 64), nn.ReLU(True), nn.Dropout(),
        nn.Linear(64, 10),
    )  # fmt: skip
    return WithClassifier(nn.Sequential(*layers), 2, head)


def alexnet() -> nn.Module:
    """A kernel of 11 and a stride of 4, and activations in place."""
    features = nn.Sequential(
        nn.Conv2d(3, 8, kernel_size=11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(8, 24, kernel_size=5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(24, 48, kernel_size=3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(48, 32, kernel_size=3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, kernel_size=3, padding=1), nn.ReLU(inplace=True),
    )  # fmt: skip
    head = nn.Sequential(
        nn.Dropout(), nn.Linear(32 * 9, 64), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(64, 64),
        nn.ReLU(inplace=True), nn.Linear(64, 10),
    )  # fmt: skip
    return WithClassifier(features, 3, head)


def dcgan_weights(module: nn.Module) -> None:
    """DCGAN's way to initialise a network, by the names of its modules."""
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(module.weight.data, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


def dcgan_discriminator() -> nn.Module:
    """No bias, and leaky activations in place."""
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for width in (8, 16):
        layers += [nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width)]
        layers += [nn.LeakyReLU(0.2, inplace=True)]
    layers += [nn.Conv2d(32, 1, 4, 1, 0, bias=False), nn.Sigmoid()]
    return nn.Sequential(*layers).apply(dcgan_weights)


class Conv2dSame(nn.Conv2d):
    """TensorFlow's padding: as many zeros as the input's size asks for, the odd one after."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pads: list[int] = []
        axes = zip(
            x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], self.dilation[::-1], strict=True
        )
        for size, kernel, stride, dilation in axes:
            pad = max((math.ceil(size / stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
            pads += [pad // 2, pad - pad // 2]
        return F.conv2d(
            F.pad(x, pads), self.weight, self.bias, self.stride, (0, 0), self.dilation, self.groups
        )


class TfEfficientNet(nn.Module):
    """The stem, a depthwise block with squeeze and excitation, and the head of tf_efficientnet."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = Conv2dSame(3, 8, 3, stride=2, bias=False)
        self.bn1 = nn.Sequential(nn.BatchNorm2d(8, eps=1e-3), nn.SiLU(inplace=True))
        self.conv_dw = Conv2dSame(8, 8, 3, stride=2, groups=8, bias=False)
        self.bn2 = nn.Sequential(nn.BatchNorm2d(8, eps=1e-3), nn.SiLU(inplace=True))
        self.squeeze = nn.Sequential(nn.Conv2d(8, 2, 1), nn.SiLU(inplace=True), nn.Conv2d(2, 8, 1))
        self.conv_pw = nn.Conv2d(8, 16, 1, bias=False)
        self.classifier = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.bn2(self.conv_dw(self.bn1(self.conv_stem(x))))
        x = x * self.squeeze(x.mean((2, 3), keepdim=True)).sigmoid()
        return self.classifier(self.conv_pw(x).mean((2, 3)))


def wav2vec2() -> nn.Module:
    """Takes sound without an axis of channels, and adds that axis itself."""
    config = transformers.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, conv_dim=(8, 8),
        conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, classifier_proj_size=8, num_labels=10,
    )  # fmt: skip
    return transformers.Wav2Vec2ForSequenceClassification(config)


ARCHITECTURES = {  # with the shape of a sample and a kappa that keeps the core small
    "VGG-11": (vgg11, (3, 32, 32), 16),
    "AlexNet": (alexnet, (3, 48, 48), 48),
    "DCGAN": (dcgan_discriminator, (3, 32, 32), 16),
    "tf_efficientnet": (TfEfficientNet, (3, 32, 32), 16),
    "tf_efficientnet, odd": (TfEfficientNet, (3, 33, 31), 11),
    "Wav2Vec2": (wav2vec2, (400,), 2),
}
