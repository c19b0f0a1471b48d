"""Trains arms on sets of images, seed by seed, and compares them with plain data.

The first layer of morphed data comes from a network that the developer trained on other images, and as a
second setting from one that was trained on the same images, which a developer does not have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mole.errors import ParameterError
from mole.experiments.arm_training import Arm, Budgets, Lesson, Training
from mole.experiments.arms_report import NAMES, pairs_of, row_of
from mole.experiments.duration import Duration
from mole.experiments.experiment import Request, Result
from mole.experiments.image_sets import ImageSet, all_of, shape_of
from mole.sources.source import Source

OTHER, SAME = "other images", "the same images"


class Way(NamedTuple):
    """An arm, and which images its first layer was trained on, where it was trained before."""

    arm: Arm
    setting: str | None = None
    first_only: bool = False  # on the first set of images alone


@dataclass(frozen=True)
class Row:
    """A line of the table: one set of images and one way, with a training for each seed."""

    data: str
    way: Way
    trainings: Sequence[Training]


def compare(request: Request, budgets: Budgets, ways: Sequence[Way]) -> Result:
    """Train every way on every set of images of a request; rows and pairs for JSON.

    Raises:
        ParameterError: if there are no other images, or some cannot be used.
    """
    rows = list(_rows(request, budgets, ways))
    order = _in_order(rows, request)
    left = [one for one in order if not request.store.has(one.facts)]
    if len(left) < len(order):
        request.say(f"{len(order) - len(left)} of {len(order)} trainings are finished already")
    duration = Duration(
        [one.lesson.steps(one.budget) for one in left], budgets.usual.batch, request.say, request.progress
    )
    for training in left:
        found = training.piece(request.store, duration.step)
        duration.finish(f"{_named(training, rows)}: {_score(found)}")
    told = [
        row_of(row.data, row.way.setting, row.way.arm, [one.piece(request.store) for one in row.trainings])
        for row in rows
    ]
    return {
        "budget": budgets.usual.facts,
        "sets": list(_sets(request, budgets)),
        "rows": told,
        "pairs": pairs_of(told),
    }


def _rows(request: Request, budgets: Budgets, ways: Sequence[Way]) -> Iterator[Row]:
    lessons = [Lesson.of(images) for images in request.data]
    others = [_other(request, number) for number in range(len(lessons))]
    for number, (images, lesson, other) in enumerate(zip(request.data, lessons, others, strict=True)):
        for way in ways if number == 0 else [way for way in ways if not way.first_only]:
            source = {OTHER: other, SAME: lesson}.get(way.setting or "")
            before = [
                Training(source, budgets.of(source), "plain", seed) if source else None
                for seed in range(request.seeds)
            ]
            trainings = [
                Training(lesson, budgets.of(lesson), way.arm, seed, one) for seed, one in enumerate(before)
            ]
            yield Row(images.name, way, trainings)


def _other(request: Request, number: int) -> Lesson:
    """What the developer trains the first layer on: public images, or else the next set of images."""
    channels = request.data[number].shape[0]
    if request.public is not None:
        return replace(_of_source(request.public), channels=channels)
    if len(request.data) < 2:
        raise ParameterError(
            "the first layer has to come from other images: give public ones, or a second set of images"
        )
    return replace(Lesson.of(request.data[(number + 1) % len(request.data)]), channels=channels)


def _of_source(public: Source) -> Lesson:
    """Public images; scored too where they have a split for that, as it costs nothing."""
    if {"train", "test"} <= {*public.splits}:
        return Lesson.of(ImageSet.of(public, "the public images"))
    part, shape = all_of(public), shape_of(public)
    return Lesson(part, None, shape, shape[0], 1 + int(part.labels.max()))


def _in_order(rows: Sequence[Row], request: Request) -> list[Training]:
    """Every training once: way by way, so that those named first are complete first; each after its own."""
    ways = list(dict.fromkeys(row.way for row in rows))
    found: dict[tuple[object, ...], Training] = {}
    for way in ways:
        for seed in range(request.seeds):
            for row in rows:
                if row.way == way:
                    one = row.trainings[seed]
                    found |= {each.facts: each for each in (one.before, one) if each is not None}
    return list(found.values())


def _named(training: Training, rows: Sequence[Row]) -> str:
    """A training in words."""
    for row in rows:
        if training.facts in [one.facts for one in row.trainings]:
            setting = f", first layer from {row.way.setting}" if row.way.setting else ""
            return f"{NAMES.get(row.data, row.data)}, {row.way.arm}{setting}, seed {training.seed}"
    return f"first layer from other images, seed {training.seed}"


def _score(found: dict[str, Any]) -> str:
    if found.get("accuracy") is None:
        return "trained"
    area = "" if found.get("auc") is None else f", AUC {found['auc']:.3f}"
    return f"{100 * found['accuracy']:.1f} %{area}"


def _sets(request: Request, budgets: Budgets) -> Iterator[dict[str, Any]]:
    """How much was learned from, and what it scores to answer always with the most frequent class."""
    for images in request.data:
        budget = budgets.of(Lesson.of(images))
        counts = [(images.train, budget.images), (images.test, budget.tests)]
        train, test = (len(part) if most is None else min(len(part), most) for part, most in counts)
        labels = images.test.labels
        frequent = round(float(np.bincount(labels).max()) / len(labels), 6)
        yield {
            "data": images.name, "classes": images.classes, "train_images": train, "test_images": test,
            "epochs": budget.epochs, "most_frequent_class": frequent,
        }  # fmt: skip
