"""Run a notebook and keep what its cells show: `python tools/run_notebook.py examples/story.ipynb`.

Only what a reader sees is kept: no times, no paths, no versions of the machine that ran it.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

LANGUAGE = {"name": "python"}


def run(path: Path, *, timeout: int = 600) -> nbformat.NotebookNode:
    """A notebook with new outputs; the file stays as it is."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(path.parent)}}).execute()
    notebook.metadata.language_info = LANGUAGE
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("image/jpeg", None)  # the same picture is there as PNG
    return notebook


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("say which: python tools/run_notebook.py examples/story.ipynb")
    nbformat.write(run(Path(sys.argv[1])), sys.argv[1])
