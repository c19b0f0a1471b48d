"""Make the README's pictures of a finished demo: `python tools/pictures.py mole-demo docs/pictures`.

`demo.png` is the demo's own, and `audit.png` the top of its audit's page in Chromium. The demo's images are
Fashion-MNIST's, which anybody may show.
"""

import argparse
import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1000, 1100  # pixels of the window
COLOURS = 64  # of a picture: enough for a page of text, and a third of the bytes


def main() -> None:
    """Write both pictures."""
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
        ("audit.png", screenshot(page, chromium)),
    ):
        small = image.convert("RGB").quantize(COLOURS)
        small.save(arguments.out / name, optimize=True)
        print(f"{arguments.out / name}: {(arguments.out / name).stat().st_size:,} bytes")


def screenshot(page: Path, chromium: str) -> Image.Image:
    """The top of a page, as a light window shows it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        window.goto(page.resolve().as_uri(), wait_until="load")
        taken = window.screenshot()
        browser.close()
    return Image.open(io.BytesIO(taken))


if __name__ == "__main__":
    main()
