"""Make the images that the quick start works on: parts of Fashion-MNIST, as folders of small PNG files.

The images come with the package; nothing is fetched. `photos` are the provider's, with a folder for each
class; `new-photos` come later, without labels; `public-photos` are what anybody can have.
"""

import sys
from pathlib import Path

from PIL import Image

from mole.sources.bundled import Arrays, fashion_mnist

SIDE = 20  # pixels: small, so that no step takes long
TRAIN, TEST, PUBLIC, NEW = 1000, 200, 1000, 20  # a whitened core wants two images for each pixel of one


def main() -> None:
    """Make three folders in the current one."""
    for folder in map(Path, ("photos", "new-photos", "public-photos")):
        if folder.exists():
            sys.exit(f"{folder} exists already: remove it, or work in another folder")
    images = fashion_mnist()
    write(images, "private", slice(TRAIN), Path("photos/train"))
    write(images, "test", slice(TEST), Path("photos/test"))
    write(images, "public", slice(PUBLIC), Path("public-photos"))
    write(images, "test", slice(TEST, TEST + NEW), Path("new-photos"), labelled=False)


def write(images: Arrays, part: str, rows: slice, folder: Path, *, labelled: bool = True) -> None:
    """Save some images of a part, with a folder for each class if they are labelled."""
    pixels, labels = images[f"x_{part}"][rows], images[f"y_{part}"][rows]
    for number, (image, label) in enumerate(zip(pixels, labels, strict=True)):
        place = folder / str(images["classes"][label]) if labelled else folder
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).resize((SIDE, SIDE)).save(place / f"{number:04}.png")
    print(f"{folder}: {len(pixels)} images")


if __name__ == "__main__":
    main()
