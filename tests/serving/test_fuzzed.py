"""Broken requests leave the server up, and each gets an answer that the protocol knows."""

from contextlib import closing

import numpy as np
import pytest

from fuzz_server import Fuzzer


def test_broken_requests_are_refused_and_the_server_goes_on(server):
    with closing(Fuzzer(server.http, server.grpc, server.model, (1, 12, 12), seed=1)) as fuzzer:
        before = fuzzer.good()
        for _ in range(400):
            fuzzer.one()
        assert server.process.poll() is None
        assert np.array_equal(fuzzer.good(), before)
    assert fuzzer.outcomes["http 400"] > 50
    assert fuzzer.outcomes["grpc INVALID_ARGUMENT"] > 20
    assert fuzzer.outcomes["http 404"] > 2


def test_that_it_would_notice(server):
    """A server's own mistakes are not among the answers it may give."""
    with closing(Fuzzer(server.http, server.grpc, "other", (1, 12, 12), seed=1)) as fuzzer:
        with pytest.raises(SystemExit, match="HTTP answers 500"):
            fuzzer._judged(500, b"")
        with pytest.raises(SystemExit, match="a good request is refused: 404"):
            fuzzer.good()
