"""How long the playground takes to answer when a control is moved. Asked for: less than a second.

`mole playground` runs as for a visitor, and is asked as its page asks it: the morphed picture first, then
all attackers at once. Every change makes a new key, so that nothing was made before. Two times are told:
until the picture is there, and until everything is; each as the median of some rounds, and the highest.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from common import write_result

PHOTO, CLOTHING = "photograph", "clothing"


class Page:
    """What asks a playground."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)
        self._pool = ThreadPoolExecutor(8)
        self.offered = self.ask("welcome", {})

    def ask(self, what: str, wish: dict[str, Any]) -> dict[str, Any]:
        """One answer."""
        connection = http.client.HTTPConnection(self._place.netloc, timeout=60)
        connection.request("POST", self._place.path + what, json.dumps(wish) if wish else "")
        answer = connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        connection.close()
        if answer.status != http.HTTPStatus.OK:
            sys.exit(f"the playground answers {answer.status}: {told}")
        return told

    def morph(self, wish: dict[str, Any]) -> tuple[float, float]:
        """Seconds until the morphed picture is there, and until every attacker is done."""
        began = time.perf_counter()
        self.ask("look", wish)
        seen = time.perf_counter() - began
        wishes = [wish | {"attacker": attacker} for attacker in self.offered["attackers"]]
        list(self._pool.map(lambda one: self.ask("attack", one), wishes))
        return seen, time.perf_counter() - began

    def protect(self, picture: str, bits: float) -> tuple[float, float]:
        """Seconds until the noisy row is there, which is everything."""
        began = time.perf_counter()
        self.ask("protect", {"picture": picture, "bits": bits})
        taken = time.perf_counter() - began
        return taken, taken


def settings(page: Page) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every kind of picture with each core, the first and last kappa, and each tile."""
    for kind in (PHOTO, CLOTHING):
        picture = next(one["id"] for one in page.offered["pictures"] if one["kind"] == kind)
        sizes = page.offered["sizes"][kind]
        for core in page.offered["cores"]:
            for kappa in (sizes["rows"][0], sizes["rows"][1], sizes["rows"][-1]):
                wish = {"picture": picture, "layout": "rows", "size": kappa, "core": core}
                yield f"{kind}, kappa {kappa}, {core}", wish
            for tile in sizes["tiles"]:
                wish = {"picture": picture, "layout": "tiles", "size": tile, "core": core}
                yield f"{kind}, tiles of {tile}, {core}", wish


def row(what: str, times: list[tuple[float, float]]) -> dict[str, Any]:
    """What one change took."""
    seen, done = zip(*times, strict=True)
    return {
        "what": what, "seen_s": round(statistics.median(seen), 3),
        "all_s": round(statistics.median(done), 3), "highest_s": round(max(done), 3),
    }  # fmt: skip


def measured(page: Page, rounds: int) -> list[dict[str, Any]]:
    """Every change, round by round."""
    found = {what: list[tuple[float, float]]() for what, _ in settings(page)}
    noisy = {f"{bits:g} bits": list[tuple[float, float]]() for bits in page.offered["bits"]}
    first = page.offered["pictures"][0]["id"]
    for number in range(1, rounds + 1):
        for what, wish in settings(page):
            found[what].append(page.morph(wish | {"draw": number}))
        for bits, times in zip(page.offered["bits"], noisy.values(), strict=True):
            times.append(page.protect(first, bits))
    return [row(what, times) for what, times in (found | noisy).items()]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    command = [str(Path(sys.executable).with_name("mole")), "playground", "--no-browser", "--quiet"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101  (it is a pipe)
            page = Page(process.stdout.readline().strip())
            opened = time.perf_counter() - began
            changes = measured(page, rounds)
        finally:
            process.terminate()
    write_result(
        "playground",
        {
            "side": page.offered["side"], "rounds": rounds, "opened_s": round(opened, 2),
            "slowest_change_s": max(one["all_s"] for one in changes), "changes": changes,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
