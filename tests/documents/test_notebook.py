"""The notebook runs from top to bottom, and is committed with what it shows, small."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

import run_notebook

STORY = Path(__file__).parents[2] / "examples" / "story.ipynb"


def shown_by(notebook: dict) -> list[list[str]]:
    """The kinds of what each cell of code shows."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [sorted({kind for one in cell["outputs"] for kind in kinds_of(one)}) for cell in cells]


def kinds_of(output: dict) -> list[str]:
    return ["text"] if output["output_type"] == "stream" else [*output.get("data", [output["output_type"]])]


def text_of(notebook: dict) -> str:
    outputs = [one for cell in notebook["cells"] for one in cell.get("outputs", [])]
    return "".join("".join(one.get("text", "")) for one in outputs)


@pytest.fixture(scope="module")
def committed() -> dict:
    return json.loads(STORY.read_text())


@pytest.mark.timeout(600)  # it trains, and others may be at work
def test_the_notebook_runs_and_shows_what_was_committed(committed, tmp_path, monkeypatch):
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):  # nothing is left in the user's own
        monkeypatch.setenv(folder, str(tmp_path / folder))
    again = run_notebook.run(STORY)
    assert shown_by(again) == shown_by(committed)
    lines = {
        line.split("  ")[0]: line.split()[-1] for line in text_of(again).splitlines() if "%" in line[-1:]
    }
    plain, augmented, without = (int(lines[name].rstrip("%")) for name in list(lines)[:3])
    assert augmented > plain - 10
    assert without < plain - 20
    assert "A curious developer" in text_of(again)


def test_what_is_committed_can_be_looked_at(committed):
    assert STORY.stat().st_size < 300_000
    assert sum("image/png" in kinds for kinds in shown_by(committed)) == 4
    assert all("error" not in kinds for kinds in shown_by(committed))
    assert not [word for word in ("/home/", "/root/", "/tmp/", "/Users/") if word in text_of(committed)]
    assert all(cell["execution_count"] for cell in committed["cells"] if cell["cell_type"] == "code")
