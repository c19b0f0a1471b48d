"""Write docs/paper-vs-measured.md from results: `python tools/paper_vs_measured.py`.

A row for each numeric claim of the paper, from its abstract to its appendix: what it prints, what its own
formula gives, what was measured in this repository. Figures come from docs/results, benchmarks/results and
results; where a result is not there yet, the cell says so.
"""

from collections.abc import Callable, Iterator

from mole.experiments.frontier_report import markdown
from paper_claims import abstract, appendix, security, table2
from paper_costs import overhead
from paper_results import ROOT, Claim

DOCUMENT = ROOT / "docs" / "paper-vs-measured.md"
HEADS = ["where", "claim", "published", "by its own formula", "measured here", "remark"]
START = """# The paper's figures, recomputed and measured

Made by `python tools/paper_vs_measured.py` from [`docs/results`](results),
[`benchmarks/results`](../benchmarks/results) and
[`results`](../results); a test compares this page with them. A row for each numeric claim of the paper,
in its order:
*published* is what it prints, *by its own formula* what its equations give for the same setting
([analysis](analysis.md)), *measured here* what came out when we ran it. How to run it again is in
[experiments](experiments.md) and, for what comes from benchmarks, in `make bench`.

**A chance of guessing is not a chance of success.** The paper's 7.9e-90 is that of somebody who
guesses the order of 64 channels without looking at the augmented layer; whoever looks has all of them, and
all images.
"""
PARTS: dict[str, Callable[[], Iterator[Claim]]] = {
    "Abstract, introduction, related work": abstract,
    "Table 2: the augmented layer": table2,
    "Security": security,
    "Overhead, and Table 1": overhead,
    "Appendix": appendix,
}


def document() -> str:
    """The document, with the results as they are now."""
    parts = [START]
    for heading, claims in PARTS.items():
        parts.append(f"## {heading}\n\n{markdown([HEADS, *([*claim] for claim in claims())])}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document())
