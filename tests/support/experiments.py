"""What tests of experiments share: a result of the frontier, small and made up."""


def frontier_result() -> dict:
    """Two sets of images, two fronts each, at two numbers of bits."""

    def way(name: str, start: float) -> dict:
        rows = [
            {"bits": bits, **{measure: spread(start - loss) for measure in ("accuracy", "auc")}}
            for bits, loss in ((None, 0.0), (1.0, 0.1))
        ]
        return {"way": name, "features": 128, "train_images": 5000, "rows": rows}

    sets = [
        {
            "images": name,
            "classes": classes,
            "ways": [way("pixels", 0.5), {**way("large", 0.9), "fewer_images": [way("large", 0.8)]}],
        }
        for name, classes in (("cats", 10), ("lungs", 2))
    ]
    return {"sets": sets}


def spread(value: float) -> dict:
    return {"mean": value, "low": value - 0.01, "high": value + 0.01}
