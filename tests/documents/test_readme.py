"""The README is true: its code runs, its numbers are those of the benchmarks, its links lead somewhere."""

import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import layer_sizes
import mole
from mole.cli.app import load_command
from mole.demo.protected_arm import NAME as PROTECTED_ARM
from mole.provider.ledger import Entry
from mole.storage.checked import read_metadata
from mole.torch import CheckpointFacts, save_checkpoint

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"


def result(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def test_the_quick_start_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert names["logits"].shape == (8, 10)
    again = names["model"](torch.from_numpy(names["morphed"]))
    assert torch.allclose(names["logits"], again, atol=1e-5)
    recovered, images = names["recovered"]["x_train"], names["images"]
    assert np.abs(recovered.astype(int) - images).max() <= 4  # what 8 bits leave of pixels up to 255
    assert (tmp_path / "audit" / "audit.html").is_file()


def test_the_table_of_errors_is_the_benchmarks():
    rows = {row["core"]: row for row in result("numerics")["rows"] if row["kappa"] == 1}
    assert len(rows) == 4
    for core, row in rows.items():
        values = [row[name] for name in ("condition", "float32", "float16", "int8")]
        cells = [f"{v['median'] if isinstance(v, dict) else v:.1e}" for v in values]
        shown = re.search(rf"^\| `?{re.escape(core)}`?.*?\| (.*) \|$", README, flags=re.MULTILINE)
        assert shown is not None, core
        assert shown[1].split(" | ") == cells


def test_the_speeds_are_the_benchmarks():
    augment, morph = result("augment"), {row["kappa"]: row for row in result("morph")["kappas"]}
    words = " ".join(README.split())
    for sentence in (
        f"built in {augment['seconds']['augment']['median_s']:.2f} s, "
        f"{augment['times_faster_than_paper_dense_product']:.0f} times faster",
        f"a peak of {augment['memory']['peak_over_result']:.1f} times the result's memory",
        f"at {100 * morph[1]['share_of_bare_product']:.0f} % of the bare matrix product's speed "
        f"at kappa = 1 and at {100 * morph[48]['share_of_bare_product']:.0f} % at kappa = 48",
        f"{morph[1]['images_per_s']:,} CIFAR images a second at kappa = 1, "
        f"{morph[12]['images_per_s']:,} at kappa = 12",
    ):
        assert sentence in words


def test_what_opening_a_key_takes_is_the_benchmarks():
    read = result("open_key")
    plain, whitened = (row["now"]["sum"]["seconds"] for row in read["rows"] if row["threads"] == "any")
    said = f"takes {plain:.1f} s, and {whitened:.1f} s with a whitened core"
    assert said in " ".join(README.split())


def test_what_two_factors_gain_is_the_benchmarks():
    found = result("augmented_forward")
    words = " ".join((ROOT / "docs" / "performance.md").read_text().split())
    forward, step = found["forward_by_batch"]["64"], found["training_step_of_vgg16_batch_64"]
    fewer = found["bytes"]["dense"] / found["bytes"]["factored"]
    for sentence in (
        f"it has {fewer:.2f} times fewer numbers",
        f"{forward['times_faster_in_factors']} times faster and a training step of VGG-16 "
        f"{step['times_faster_in_factors']} times",
        f"building it takes {1 / found['build']['times_faster_in_factors']:.2f} times as long",
    ):
        assert sentence in words
    assert found["relative_difference_of_features"] < 1e-5


def test_the_speed_of_deliveries_and_the_demos_accuracies_are_the_benchmarks():
    float32, int8, ray = (result("deliver")[name] for name in ("float32", "int8", "ray"))
    words = " ".join(README.split())
    for sentence in (
        f"{100 * float32['share_of_bare_product']:.0f} % of the bare product's speed with float32 and "
        f"{100 * int8['share_of_bare_product']:.0f} % with int8",
        f"take {int8['data_bytes_over_plain_8_bit_bytes']:.2f} times the bytes",
        f"in at most {max(float32['peak_memory_gb'], int8['peak_memory_gb']):.1f} GB of memory",
        f"reaches {100 * ray['share_of_local_rate']:.0f} % of that speed with its start, and "
        f"{100 * ray['share_of_local_rate_without_start']:.0f} % without",
    ):
        assert sentence in words
    sealed = [row["sealed_share_of_open_rate"] for row in (float32, int8)]
    least, most = sorted(round(100 * (1 - share)) for share in sealed)
    assert f"{least} to {most} % of the speed of writing" in words
    assert float32["share_of_bare_product"] >= 0.85
    assert int8["share_of_bare_product"] >= 0.78  # Parquet's dictionary is a tenth of the work
    assert ray["share_of_local_rate_without_start"] >= 0.6
    assert int8["data_bytes_over_plain_8_bit_bytes"] <= 1.02
    assert max(float32["peak_memory_gb"], int8["peak_memory_gb"]) < 2
    arms = result("demo")["arms"]
    assert list(arms)[3:] == [PROTECTED_ARM]
    assert arms["morphed, no augmented layer"]["accuracy"] < arms[PROTECTED_ARM]["accuracy"]
    for name, arm in arms.items():
        assert f"| {name} | {100 * arm['accuracy']:.1f} % | {100 * arm['spread']:.1f} % |" in README


def test_the_targets_are_met_by_the_committed_results():
    augment, morph = result("augment"), result("morph")["kappas"]
    assert augment["times_faster_than_paper_dense_product"] >= 15
    assert augment["memory"]["peak_over_result"] <= 1.5
    assert min(row["share_of_bare_product"] for row in morph) >= 0.8
    speeds = [row["times_faster_than_kappa_1"] for row in morph]
    assert speeds == sorted(speeds)
    limits = {"orthogonal": 1e-5, "whitened": 1e-5, "gaussian": 1e-3}
    for row in result("numerics")["rows"]:
        error = row["float32"]["high"] if isinstance(row["float32"], dict) else row["float32"]
        assert error <= limits.get(row["core"], np.inf)


def test_the_table_of_sizes_is_computed():
    assert layer_sizes.table() in README


def test_the_software_is_cited_with_its_version_and_its_paper():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {mole.__version__}\n" in citation
    for words in (
        "Towards Efficient and Secure Delivery",
        "Shen",
        "Liu",
        "Chen",
        "Li",
        "arxiv.org/abs/1909.07632",
    ):
        assert words in citation


def test_files_that_documents_name_exist():
    """Paths in backquotes, as seen from the repository or from the package."""
    for document in ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/analysis.md"):
        named = re.findall(r"`([\w./-]+/[\w.-]*\.(?:py|md|json))`", (ROOT / document).read_text())
        missing = [
            name for name in named if not any((at / name).exists() for at in (ROOT, ROOT / "src" / "mole"))
        ]
        assert missing == [], document


def documented(heading: str) -> list[str]:
    """The names in the first table below a heading of docs/format.md."""
    section = (ROOT / "docs" / "format.md").read_text().split(f"# {heading}\n")[1]
    table = re.search(r"\|---\|---\|\n((?:\|.*\n)+)", section)
    assert table is not None
    cells = [line.split("|")[1] for line in table[1].splitlines()]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_the_documented_fields_of_ledger_and_checkpoint_are_the_real_ones(tmp_path):
    assert documented("Ledger") == [field.name for field in fields(Entry)]
    model = torch.nn.Linear(4, 2)
    save_checkpoint(tmp_path / "m", model, CheckpointFacts("mine", (4,), 2))
    assert set(documented("Checkpoint (version 1 or 2)")) == set(read_metadata(tmp_path / "m")) - {"sha256"}


def test_every_dependency_has_its_reason():
    tomllib = pytest.importorskip("tomllib")

    reasons = README.split("\n## Dependencies\n")[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["torch"]]:
        name = re.match(r"[a-z0-9]+", requirement)[0]
        assert re.search(rf"^\| {name}\b.*\| .+ \|$", reasons, flags=re.MULTILINE), name


def test_make_targets_of_the_documents_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for document in ("README.md", "CONTRIBUTING.md", "docs/analysis.md"):
        assert set(re.findall(r"\bmake ([a-z]+)\b(?=[ `\n])", (ROOT / document).read_text())) <= {
            *targets, "a", "sure",
        }  # fmt: skip


def test_the_budget_that_the_quick_start_advises_is_the_default():
    (budget,) = [part for part in load_command("audit").params if "--budget" in part.opts]
    assert f"leave `--budget` out, which gives the attacks {budget.default:g}." in " ".join(README.split())


def test_how_much_more_exact_float16_is_follows_from_the_table():
    (said,) = re.findall(r"some (\d+) times as exact as `int8`", README)
    for core in ("orthogonal", "whitened"):
        *_, float16, int8 = re.search(rf"^\| `{core}` \|(.*)\|$", README, re.MULTILINE)[1].split("|")
        assert float(int8) / float(float16) == pytest.approx(int(said), rel=0.3)


def test_environments_that_the_readme_makes_are_ignored_by_git():
    made = re.findall(r"-m venv (\w+)", README)
    assert made
    assert {f"/{name}/" for name in made} <= {*(ROOT / ".gitignore").read_text().splitlines()}


def test_the_folders_that_become_splits_are_named(tmp_path):
    (sentence,) = re.findall(r"Folders ([^.]*?) inside the data become splits", " ".join(README.split()))
    names = re.findall(r"`(\w+)/`", sentence)
    for name in names:
        (tmp_path / name / "cat").mkdir(parents=True)
        Image.new("L", (4, 4)).save(tmp_path / name / "cat" / "one.png")
    assert {*mole.open_source(tmp_path).splits} == {*names} == {"train", "test"}
