"""Attempts at a server that is away: somebody is told while they last, once, and not of a hiccup."""

import threading
import warnings

import pytest

from mole.errors import MoleWarning, ServerError, TryAgainError
from mole.provider import channels
from mole.provider.channels import persistently


def away(attempts: int):
    """Work that fails so many times before it is done."""
    left = iter(range(attempts))

    def work() -> str:
        if next(left, None) is None:
            return "done"
        raise TryAgainError("nobody answers at 127.0.0.1:8080")

    return work


def test_long_attempts_are_told_once(monkeypatch):
    monkeypatch.setattr(channels, "QUIET_FOR", 0.0)
    with pytest.warns(
        MoleWarning, match="nobody answers at .*; trying again for up to 60 s in all"
    ) as told:
        assert persistently(away(3), patience=60) == "done"
    assert len(told) == 1


def test_a_hiccup_is_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert persistently(away(1), patience=60) == "done"


def test_patience_ends():
    with pytest.raises(ServerError, match="tried for 0 s, so see whether"):
        persistently(away(1), patience=0)


def test_nothing_is_tried_again_once_others_gave_up():
    stop = threading.Event()
    stop.set()
    with pytest.raises(ServerError, match="not tried again, because another request failed"):
        persistently(away(3), 60, stop)
