"""`tools/fuzz.py`: a short run finds nothing, what was found stays mended, and it can find something."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
CASES = 300
# Cases that once failed, and why.
FOUND = {
    "arrow/21/403": "a column whose name is no text was asked for after the file had been read",
    "delivery/31/40": "Arrow aborted when it was asked about a column whose levels were counted wrongly",
    "delivery/5/30": "NumPy warned of a NaN among morphed values, on the terminal",
    "delivery-int8/2/86": "Arrow aborted when it was asked for a packing that does not exist",
}

pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits memory as Linux does")


def fuzz(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, TOOLS / "fuzz.py", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip


def test_a_short_run_and_everything_found_before():
    replays = [part for case in FOUND for part in ("--replay", case)]
    done = fuzz("--cases", CASES, "--seed", 1, *replays)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    assert int(done.stdout.split()[0]) >= CASES + len(FOUND)


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    specification = importlib.util.spec_from_file_location("fuzz", TOOLS / "fuzz.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setattr(module, "__name__", "fuzz", raising=False)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ("raise KeyError('x')", "KeyError"),
        ("__import__('os').abort()", "SIGABRT"),
        ("__import__('ctypes').string_at(0)", "SIGSEGV"),
        ("__import__('time').sleep(60)", "did not answer for 1 s"),
        ("while True: pass", "too long"),
        ("bytearray(3 << 30)", "MemoryError"),
        ("__import__('fuzz_readers').command('no-such-command')", "exit code"),
    ],
)
def test_it_notices(tool, tmp_path, monkeypatch, read, reason):
    """Each way to fail, by a reader that fails in that way."""
    monkeypatch.setattr(tool, "SECONDS", 0.3 if "while" in read else 30)
    monkeypatch.setattr(tool, "WAIT", 1 if "sleep" in read else 60)
    (tmp_path / "good" / "layer").mkdir(parents=True)
    (tmp_path / "good" / "layer" / "layer.safetensors").write_bytes(bytes(64))
    targets = {"layer": tool.TARGETS["layer"]._replace(read=lambda folder: exec(read))}
    monkeypatch.setattr(tool, "TARGETS", targets)
    cases = [tool.Case("layer", 1, number) for number in range(2)]
    failures = tool.fuzz(cases, tmp_path / "good", tmp_path)
    assert [case for case, _ in failures] == ["layer/1/0", "layer/1/1"]
    assert all(reason in why for _, why in failures)
