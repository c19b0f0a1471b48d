"""The report on disk: audit.json and audit.html in a folder of their own."""

import shutil
from pathlib import Path

from mole.audit.as_json import to_json
from mole.audit.page import render
from mole.audit.report import Report
from mole.errors import DeliveryError

PRIVATE = 0o700  # the page shows some of the provider's images


def write_report(report: Report, folder: Path) -> Path:
    """Write a report into a new folder; the page's path."""
    contents = {"audit.json": to_json(report), "audit.html": render(report)}
    unfinished = folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=PRIVATE, parents=True)
        for name, text in contents.items():
            (unfinished / name).write_text(text, encoding="utf-8")
        unfinished.rename(folder)
    except OSError as error:
        raise DeliveryError(f"{folder} can not be written: {error.strerror}") from None
    finally:  # after an interruption, too: it shows private images
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder / "audit.html"
