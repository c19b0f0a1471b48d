"""A look at a whole source before any slow work: everything that is wrong with it, at once.

    found = inspect(open_source("photos"), Preparation.for_layer(layer))
    found.problems

Samples are judged by their headers, so that thousands of them take a second. One whose header leaves
doubts is read: a sample that is refused here would be refused later, too. Damage in the midst of pixels
shows only when they are decoded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from mole.errors import Advice, MoleError, ProblemsError, ShapeError, SourceError
from mole.progress import Progress, no_progress
from mole.quantities import counted
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError, Outline, Source, Split

READERS = 8  # over a network, waiting is most of it
AT_A_TIME = 256
EXAMPLES = 2
_VARYING = re.compile(r"\d+|\(.*\)")  # sizes, and what a decoder says: no kinds of their own


@dataclass
class Problem:
    """What is wrong with some of the samples, in one way.

    Attributes:
        first: what is wrong with the first of them.
        count: how many there are.
        names: the first few of them.
    """

    first: BadSampleError
    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, name: str, count: int = 1) -> None:
        """Count further samples, named after one of them."""
        self.count += count
        if len(self.names) < EXAMPLES:
            self.names.append(name)

    def error(self, *, alone: bool = True, skipped: bool = False) -> MoleError:
        """How many, an example or two, and the fix; among others it need not say what they all share."""
        first = self.first
        left_out = " is left out" if self.count == 1 else " are left out"
        cannot = (left_out if skipped else " cannot be used") if alone else ""
        if self.count == 1:
            reason, who = first.reason, f"{first.name}{cannot}"
        else:
            reason = re.sub("^it (?=is|has)", "the first ", first.reason)
            others = self.count - len(self.names)
            names = ", ".join(self.names) + (f" and {others:,} more" if others else "")
            who = f"{counted(self.count, 'image')}{cannot} ({names})"
        if first.advice or skipped:
            return self._error(f"{who}: {reason}", reason, first.advice)
        remedy = "leave it out" if self.count == 1 else "leave them out"
        joint = ", or" if ": " in reason else ": get another copy, or"
        return self._error(f"{who}: {reason}{joint} {remedy}", reason, {"skip_bad": True})

    def _error(self, message: str, reason: str, advice: Advice) -> MoleError:
        if self.count > 1 or not message.startswith(f"{self.first.name} cannot be used: "):
            return SourceError(message, advice=advice)
        said = message.removeprefix(f"{self.first.name} cannot be used: ")
        return BadSampleError(self.first.name, said, advice=advice)


@dataclass
class Numbers:
    """How many usable samples have one number type, and the first of them."""

    first: str
    count: int = 0


@dataclass(frozen=True)
class Inspection:
    """What was found.

    Attributes:
        samples: how many were looked at, files of kinds that cannot be read among them.
        problems: what is wrong, each kind once.
        numbers: of each split, the number types of the samples that can be used.
    """

    samples: int
    problems: tuple[Problem, ...]
    numbers: Mapping[str, Mapping[str, Numbers]] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        """How many samples cannot be used."""
        return sum(problem.count for problem in self.problems)

    def error(self, *, skipped: bool = False) -> MoleError | None:
        """Everything that is wrong, in one message; None where all is well.

        Args:
            skipped: whether it was decided to go on without those samples, so that it is no advice.
        """
        if len(self.problems) <= 1:
            return self.problems[0].error(skipped=skipped) if self.problems else None
        return ProblemsError(
            f"{self.bad:,} of {counted(self.samples, 'image')} "
            f"{'are left out' if skipped else 'cannot be used'}, for {len(self.problems)} reasons",
            [problem.error(alone=False, skipped=skipped) for problem in self.problems],
        )

    def refuse(self, *, skip_bad: bool) -> None:
        """Stop where something is wrong; with `skip_bad` only where nothing else is left.

        Raises:
            MoleError: with everything that is wrong.
        """
        error = self.error()
        if error is None or (skip_bad and self.bad < self.samples):
            return
        first = self.problems[0].first
        is_all = self.bad == self.samples > 1 and len(self.problems) == 1
        if not skip_bad and not (is_all and not first.advice):  # leaving them out would be the advice
            raise error
        raise SourceError(
            f"not one of {counted(self.samples, 'sample')} can be used, so nothing is left: "
            f"{first.message}",
            advice=first.advice,
        )


def gathered(errors: Iterable[BadSampleError], samples: int) -> Inspection:
    """What was found by whoever read all samples: errors of the same kind together."""
    problems: dict[tuple[str, ...], Problem] = {}
    for error in errors:
        _count(problems, error)
    return Inspection(samples, tuple(problems.values()))


def inspect(source: Source, preparation: Preparation, *, progress: Progress = no_progress) -> Inspection:
    """Look at every sample of a source without decoding pixels.

    Args:
        source: the provider's data.
        preparation: how samples are to become plain data.
        progress: called with the samples looked at and the number of all.
    """
    problems: dict[tuple[str, ...], Problem] = {}
    for name in source.unread:
        reason = "it is of a kind that cannot be read: convert it to PNG"
        _count(problems, BadSampleError(name, reason))
    numbers: dict[str, dict[str, Numbers]] = {name: {} for name in source.splits}
    done, total = 0, source.count
    with ThreadPoolExecutor(READERS, thread_name_prefix="look") as readers:
        for name, split in source.splits.items():
            judge = _Judge(split, preparation)
            for start in range(0, len(split), AT_A_TIME):
                indices = range(start, min(start + AT_A_TIME, len(split)))
                found = readers.map(judge, indices) if source.decodes else map(judge, indices)
                for index, verdict in zip(indices, found, strict=True):
                    if isinstance(verdict, BadSampleError):
                        _count(problems, verdict)
                        continue
                    if verdict not in numbers[name]:
                        numbers[name][verdict] = Numbers(split.name_of(index))
                    numbers[name][verdict].count += 1
                done += len(indices)
                progress(done, total)
    return Inspection(total + len(source.unread), tuple(problems.values()), numbers)


class _Judge:
    """Says what is wrong with a sample, or the number type of one that can be used."""

    def __init__(self, split: Split, preparation: Preparation) -> None:
        self._split, self._preparation = split, preparation
        self._known: dict[Outline, ShapeError | None] = {}

    def __call__(self, index: int) -> BadSampleError | str:
        try:
            outline = self._split.outline(index)
            if outline is None:
                return self._preparation.read(self._split, index).dtype.name
        except BadSampleError as error:
            return error
        if outline not in self._known:
            self._known[outline] = self._misfit(outline)
        misfit = self._known[outline]
        if misfit is None:
            return outline.dtype
        return BadSampleError(self._split.name_of(index), misfit.message, advice=misfit.advice)

    def _misfit(self, outline: Outline) -> ShapeError | None:
        try:
            self._preparation.check(outline)
        except ShapeError as error:
            return error
        return None


def _count(problems: dict[tuple[str, ...], Problem], error: BadSampleError) -> None:
    kind = (_VARYING.sub("", error.reason), *error.advice)
    problems.setdefault(kind, Problem(error)).add(error.name)


def usable(split: Split, preparation: Preparation) -> Iterator[int]:
    """The samples of a split that can be used, as far as their headers tell."""
    judge = _Judge(split, preparation)
    return (index for index in range(len(split)) if isinstance(judge(index), str))
