"""`mole demo` and its folder: a new one, or another demo's; the story itself is told in tests/demo."""

import pytest

import mole.demo.story
from command import call, files_in
from mole.cli.demo import FILES

RESULT = {
    "arms": {"plain data": {"accuracy": 0.8, "spread": 0.01, "seconds": 1.0}},
    "plain bytes": 2_000_000, "delivered data bytes": 512, "augmented layer bytes": 39_337_984,
    "deliver seconds": 1.5, "picture": "p", "audit": "a",
}  # fmt: skip


@pytest.fixture
def told(monkeypatch):
    """A story of no length, which leaves the same names behind; how it ends can be changed."""
    ends = {"with": None}

    def tell(folder, *, seeds, say):
        for name in FILES:
            (folder / name).write_text(f"{seeds}")
        if ends["with"] is not None:
            raise ends["with"]
        return RESULT

    monkeypatch.setattr(mole.demo.story, "tell", tell)
    return ends


def test_a_demo_is_replaced_only_when_asked_for(told, tmp_path):
    done = call("demo", "--out", "d", "--seeds", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "plain images              2.0 MB" in done.stdout
    again = call("demo", "--out", "d", "--seeds", 2, cwd=tmp_path)
    says = "mole: d exists already: choose another name, or give --force to replace it\n"
    assert (again.returncode, again.stderr, (tmp_path / "d" / "audit").read_text()) == (1, says, "1")
    assert call("demo", "--out", "d", "--seeds", 2, "--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "d" / "audit").read_text() == "2"
    assert files_in(tmp_path) == {"d", *(f"d/{name}" for name in FILES)}


def test_nothing_but_a_demo_is_replaced(told, tmp_path):
    call("demo", "--out", "d", cwd=tmp_path)
    (tmp_path / "d" / "mine.txt").write_text("kept")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "file").write_text("kept")
    before = files_in(tmp_path)
    for name in ("d", "empty", "link", "file"):
        done = call("demo", "--out", name, "--force", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(
            f"mole: {name} exists already, and is not just a demo: choose another"
        )
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        (mole.MoleError("it failed"), 1, "mole: it failed\n"),
        (KeyboardInterrupt(), 130, "mole: interrupted: d is as it was before; call again to start over\n"),
    ],
    ids=["fails", "is interrupted"],
)
def test_the_old_demo_comes_back_when_the_new_one(told, tmp_path, end, code, says):
    call("demo", "--out", "d", "--seeds", 1, cwd=tmp_path)
    told["with"] = end
    done = call("demo", "--out", "d", "--seeds", 2, "--force", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", says)
    assert (tmp_path / "d" / "audit").read_text() == "1"
    assert files_in(tmp_path) == {"d", *(f"d/{name}" for name in FILES)}
