"""`mole analyse` as transcripts, and the document that shows its figures."""

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import mole
from command import Done, call
from mole.analysis import PRESETS, Figure, LayerSizes, Setting, figures_of

ROOT = Path(__file__).parents[2]
VERSIONS = ("published", "by_formula", "counted")
STEM = ["--shape", "3x224x224", "--channels", 64, "--kernel", 7, "--stride", 2, "--padding", 3]
CIFAR = ["--shape", "3x32x32", "--channels", "64", "--kernel", "3", "--padding", "1"]

NETWORK = """
import torch

def small(input_shape):
    return torch.nn.Sequential(
        torch.nn.Conv2d(input_shape[0], 4, 3, stride=2), torch.nn.Flatten(), torch.nn.Linear(64, 10)
    )

def tiny():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(32, 10))
"""


def run(*arguments: object, cwd: Path) -> Done:
    return call("analyse", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("analyse")
    layer = mole.FirstLayer.conv(np.ones((2, 1, 3, 3), dtype=np.float32), None, input_shape=(1, 6, 6))
    mole.save(layer, folder / "first-layer.safetensors")
    mole.save(
        mole.augment(layer, mole.MorphKey.generate((1, 6, 6))), folder / "augmented-layer.safetensors"
    )
    (folder / "network.py").write_text(NETWORK)
    (folder / "text.txt").write_text("just text")
    return folder


def figures(done: Done) -> dict[str, dict]:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return {figure["name"]: figure for figure in json.loads(done.stdout)["figures"]}


def columns(line: str) -> list[str]:
    return re.split(r"  +", line)


def test_a_table_of_the_papers_setting(place):
    done = run("--preset", "cifar-vgg16", cwd=place)
    assert (done.returncode, done.stderr) == (0, "The augmented layer takes 346.8 MB in 32 bits.\n")
    heading, *rows = map(columns, done.stdout.splitlines())
    assert heading == ["what", "as published", "by its formula", "as counted", "remark"]
    shown = {row[0]: row[1:4] for row in rows}
    assert shown["chance of guessing the channel order"] == ["7.9e-90"] * 3
    assert shown["developer's additional cost of inference"] == ["9 %", "63.6 %", "63.6 %"]
    assert shown["elements of the augmented layer over those of all images"] == [
        "5.12 %",
        "5.12 %",
        "109 %",
    ]
    assert len(shown) == len(PRESETS["cifar-vgg16"].figures())


def test_a_table_of_another_setting_has_the_formulas_as_published(place):
    done = run(*CIFAR, "--kappa", 3, cwd=place)
    heading, *rows = map(columns, done.stdout.splitlines())
    assert heading == ["what", "as published", "as counted", "remark"]
    shown = {row[0]: row[1:3] for row in rows}
    assert shown["known pairs of plain and morphed images that give the core"] == ["1,024", "342"]


def test_on_a_terminal_the_table_is_as_wide_as_the_terminal(place):
    pty = pytest.importorskip("pty")
    ours, its = pty.openpty()
    command = [Path(sys.executable).with_name("mole"), "analyse", "--preset", "cifar-vgg16"]
    shown = b""
    with subprocess.Popen(command, cwd=place, stdout=its, env={**os.environ, "COLUMNS": "100"}) as process:
        os.close(its)
        while part := _read(ours):
            shown += part
    os.close(ours)
    assert process.returncode == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()
    assert max(map(len, lines)) <= 100
    assert all(figure.words("counted") in " ".join(lines) for figure in PRESETS["cifar-vgg16"].figures())


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_a_setting_in_numbers_is_the_preset_and_its_printed_numbers_come_with_it(place):
    macs, images = PRESETS["cifar-vgg16"].setting.network_macs, 60_000
    by_numbers = run(*CIFAR, "--network-macs", macs, "--images", images, "--json", cwd=place)
    by_name = run("--preset", "cifar-vgg16", "--json", cwd=place)
    assert by_numbers.stdout == by_name.stdout


@pytest.mark.parametrize("change", [["--kappa", 3], ["--sigma", 0.3], ["--images", 50_000]])
def test_a_changed_preset_has_no_printed_numbers(place, change):
    found = figures(run("--preset", "cifar-vgg16", *change, "--json", cwd=place))
    assert {figure["published"] for figure in found.values()} == {None}
    assert found["inference share"]["counted"] == pytest.approx(0.636, abs=0.001)


def test_a_layers_file(place):
    found = figures(
        run("--layer", "first-layer.safetensors", "--kappa", 4, "--images", 10, "--json", cwd=place)
    )
    assert found["pairs"]["counted"] == 3
    assert found["layer elements"]["counted"] == 36 * 32
    setting = Setting(
        layer=LayerSizes.conv(input_shape=(1, 6, 6), channels=2, kernel=3), kappa=4, images=10
    )
    assert list(found.values()) == [asdict(figure) for figure in figures_of(setting)]


def test_a_networks_cost_is_counted_and_its_first_layer_found(place):
    found = figures(run("--shape", "3x9x9", "--network", "network:small", "--json", cwd=place))
    macs = 4 * 16 * 27 + 64 * 10
    extra = 4 * 16 * (3 * 81 - 27)
    assert found["developer macs"]["counted"] == extra
    assert found["inference share"]["counted"] == pytest.approx(extra / macs)


def test_a_model_with_a_layers_file_is_counted_too(place):
    call = ["--layer", "first-layer.safetensors", "--network", "network:tiny", "--json"]
    assert figures(run(*call, cwd=place))["inference share"]["counted"] == pytest.approx(
        32 * 27 / (32 * 9 + 320)
    )


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "say which first layer: give one of --layer, --shape and --preset"),
        (["--layer", "first-layer.safetensors", "--preset", "cifar-vgg16"], 2, "give one of"),
        (["--shape", "3x32x32"], 2, "--shape is not enough: add --channels"),
        (["--shape", "3,32,32", "--channels", 4], 2, "write it as 3x32x32"),
        (["--shape", "3x4x4", "--channels", 4, "--kernel", 5], 1, "a kernel of side 5 does not fit"),
        (["--layer", "first-layer.safetensors", "--channels", 4], 2, "--channels belongs to --shape"),
        (["--layer", "missing"], 1, "missing cannot be read"),
        (["--layer", "text.txt"], 1, "text.txt is not a layer file"),
        (["--layer", "augmented-layer.safetensors"], 1, "a first layer is needed here"),
        (["--preset", "lenet"], 2, "there is no preset 'lenet': use cifar-vgg16 or imagenet-resnet152"),
        (["--preset", "cifar-vgg16", "--network", "vgg16"], 2, "give one"),
        ([*CIFAR, "--network", "vgg16", "--network-macs", 5], 2, "give one"),
        ([*CIFAR, "--kappa", 7], 1, "kappa = 7 does not divide the 3072 elements"),
        ([*CIFAR, "--sigma", 1.5], 1, "give a number between 0 and 1"),
        ([*CIFAR, "--network", "lenet"], 1, "no built-in network 'lenet'"),
        ([*CIFAR, "--network", "network:missing"], 1, "has no function 'missing'"),
        (["--shape", "1x8x8", "--channels", 2, "--network", "network:tiny"], 1, "cannot be counted"),
    ],
)
def test_a_mistake_is_one_sentence_and_no_traceback(place, arguments, code, sentence):
    done = run(*arguments, cwd=place)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.startswith("mole: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [[*CIFAR, "--images", 0], [*CIFAR, "--images", 10**400], ["--shape"], ["--kappa", "one"]]
)
def test_a_wrong_call_has_its_own_exit_code(place, arguments):
    assert run(*arguments, cwd=place).returncode == 2


# The document --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_the_committed_figures_are_the_codes(name):
    committed = json.loads((ROOT / "docs" / "results" / f"analysis-{name}.json").read_text())
    assert committed["setting"] == asdict(PRESETS[name].setting)
    assert [figure["name"] for figure in committed["figures"]] == [f.name for f in PRESETS[name].figures()]
    for stored, figure in zip(committed["figures"], PRESETS[name].figures(), strict=True):
        for field, value in asdict(figure).items():
            exact = value is None or field not in VERSIONS
            assert stored[field] == (value if exact else pytest.approx(value, rel=1e-12))


@pytest.mark.parametrize("name", PRESETS)
def test_the_documents_table_is_the_committed_figures(name):
    committed = json.loads((ROOT / "docs" / "results" / f"analysis-{name}.json").read_text())
    words = (ROOT / "docs" / "analysis.md").read_text()
    section = words[words.index(f"`{name}`") :].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    expected = [
        [figure.what, figure.equation, *map(figure.words, VERSIONS)]
        for figure in (Figure(**stored) for stored in committed["figures"])
    ]
    assert [row.strip("| ").split(" | ") for row in rows] == expected


def test_the_documents_networks_are_the_presets():
    words = " ".join((ROOT / "docs" / "analysis.md").read_text().split())
    vgg, resnet = (PRESETS[name].setting.network_macs for name in ("cifar-vgg16", "imagenet-resnet152"))
    assert f"{vgg:,} for VGG-16 and {resnet:,} for ResNet-152" in words
    assert f"--network-macs {vgg}" in words
    shown = {figure.name: figure.words("by_formula") for figure in PRESETS["imagenet-resnet152"].figures()}
    assert f"of ImageNet-1k the same formula gives {shown['data share']}" in words


def test_tiles_are_counted(place):
    """By hand: a kernel of 3x3 tiles from q = 3 x 8^2 values to 64 x 4^2 features, on 28x28 tiles."""
    done = run(*STEM, "--tile", 8, "--json", "--quiet", cwd=place)
    found = figures(done)
    elements = 192 * 1024 * 9
    assert found["core side"]["counted"] == 192
    assert found["pairs"]["counted"] == 1
    assert found["layer elements"]["counted"] == found["reversing equations"]["counted"] == elements
    assert found["developer macs"]["counted"] == elements * 28**2 - 64 * 112**2 * 147
    assert found["provider macs"]["counted"] == 784 * 192**2
    assert json.loads(done.stdout)["setting"]["tiles"]["tiles"] == 784


def test_tiles_of_a_file_are_counted_like_tiles_of_sizes(place):
    file = run("--layer", "first-layer.safetensors", "--tile", 3, "--json", "--quiet", cwd=place)
    sizes = run("--shape", "1x6x6", "--channels", 2, "--tile", 3, "--json", "--quiet", cwd=place)
    assert json.loads(file.stdout) == json.loads(sizes.stdout)


def test_tiles_come_with_a_warning(place):
    done = run("--preset", "cifar-vgg16", "--tile", 4, cwd=place)
    assert "side of the core" in done.stdout
    assert "takes 1.8 MB in 32 bits" in done.stderr
    assert "mole: warning: tiles hide images from the eye only" in done.stderr
    plain = run("--preset", "cifar-vgg16", cwd=place)
    assert "tiles" not in plain.stderr
    assert "side of the core" not in plain.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--preset", "cifar-vgg16", "--tile", "5"], "cannot be cut into tiles of side 5"),
        (["--preset", "cifar-vgg16", "--tile", "4", "--kappa", "2"], "leave out --kappa"),
        (
            ["--shape", "3x32x32", "--channels", "8", "--stride", "3", "--tile", "4"],
            "does not divide tiles",
        ),
        (["--shape", "3x8x8", "--channels", "8", "--kernel", "9", "--tile", "4"], "does not fit"),
    ],
)
def test_tiles_that_cannot_be(place, arguments, reason):
    done = run(*arguments, cwd=place)
    assert done.returncode != 0
    assert reason in done.stderr
    assert done.stdout == ""


def test_the_document_has_the_figures_of_tiles():
    document = (ROOT / "docs" / "analysis.md").read_text()
    kept = json.loads((ROOT / "docs" / "results" / "analysis-tiles.json").read_text())
    preset = PRESETS["imagenet-resnet152"]
    assert kept["figures"] == json.loads(json.dumps([asdict(f) for f in figures_of(preset.in_tiles(8))]))
    table = document.split("## Tiles")[1].split("## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    told = {figure.what: figure.words("counted") for figure in figures_of(preset.in_tiles(8))}
    assert len(rows) == 8
    for what, counted in rows:
        assert told[what] == counted
