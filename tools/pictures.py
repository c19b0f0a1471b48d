"""Make the README's pictures of a finished demo: `python tools/pictures.py mole-demo docs/pictures`.

`demo.png` is the demo's own, `audit.png` the top of its audit's page in Chromium, and `playground.png` that
of the playground. The demo's images are Fashion-MNIST's, which anybody may show, and the playground's are
photographs inside scikit-image.
"""

import argparse
import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1000, 1100  # pixels of the window
WIDE = (1280, 1560)  # of the playground's
COLOURS = 64  # of a picture: enough for a page of text, and a third of the bytes


def main() -> None:
    """Write all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("demo", type=Path, help="folder that `mole demo` made")
    parser.add_argument("out", type=Path, help="folder for the pictures")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("Chromium is not there: apt install chromium")
    arguments.out.mkdir(parents=True, exist_ok=True)
    page = arguments.demo / "audit" / "audit.html"
    for name, image in (
        ("demo.png", Image.open(arguments.demo / "demo.png")),
        ("audit.png", screenshot(page.resolve().as_uri(), chromium)),
        ("playground.png", playground(chromium)),
    ):
        small = image.convert("RGB").quantize(COLOURS)
        small.save(arguments.out / name, optimize=True)
        print(f"{arguments.out / name}: {(arguments.out / name).stat().st_size:,} bytes")


def playground(chromium: str) -> Image.Image:
    """The top of the playground's page, when all is worked out."""
    program = "from mole.cli import main; main()"
    command = [sys.executable, "-c", program, "playground", "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101  (it is a pipe)
            return screenshot(process.stdout.readline().strip(), chromium, "Done: morphed in", WIDE)
        finally:
            process.terminate()


def screenshot(
    address: str, chromium: str, until: str = "", size: tuple[int, int] = (WIDTH, HEIGHT)
) -> Image.Image:
    """The top of a page, as a light window shows it, when it shows some words."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
        window.goto(address, wait_until="load")
        if until:
            window.get_by_text(until).wait_for(timeout=120_000)
        taken = window.screenshot()
        browser.close()
    return Image.open(io.BytesIO(taken))


if __name__ == "__main__":
    main()
