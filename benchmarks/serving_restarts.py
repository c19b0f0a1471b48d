"""Load on a server that is killed and started again: no request is lost, and none is answered twice.

A few threads ask a server on this machine without pause, each with a client of its own. Twice in that time
the server is killed as hard as can be (SIGKILL), and started again at the same place. Every answer is
compared with what onnxruntime gives for the same rows; the provider's own log of requests is counted at the
end.
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import mole
from common import write_result
from mole.exchange.inference_messages import Message
from mole.protection.onnx_session import OnnxSession
from mole.provider.channels import Channel
from mole.provider.ledger import STATE, Ledger
from mole.provider.request_log import RequestLog
from serving import SHAPE, Server, exported

KILLS, THREADS, ROWS, DOWN = 2, 3, 8, 2.0


class Counted:
    """A channel that counts what is sent and what is answered, by the id of each request."""

    def __init__(self, channel: Channel, sent: Counter[str], answered: Counter[str]) -> None:
        self._channel, self._sent, self._answered = channel, sent, answered

    def infer(self, model: str, message: Message) -> Message:
        """One attempt."""
        self._sent[message.id] += 1
        found = self._channel.infer(model, message)
        self._answered[found.id] += 1
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--most", type=int, default=200_000, help="requests of each thread at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[STATE] = folder
        write_result("serving_restarts", measured(Path(folder), options.seconds, options.most))


def measured(folder: Path, seconds: float, most: int) -> dict[str, Any]:
    """What came of all requests."""
    file = exported("small_resnet", "tiles of 4", folder).file
    key = mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32), tile=4)
    images = np.random.default_rng(0).normal(size=(64, ROWS, *SHAPE)).astype(np.float32)
    session = OnnxSession.open(file)
    expected = [session(np.asarray(mole.morph(some, key))) for some in images]
    server = Server(file)
    where = server.where
    ports = [where[door].rpartition(":")[2] for door in ("http", "grpc")]
    with mole.Client(where["grpc"], key, model=file.stem) as client:
        client.predict(images[0])  # a mistake shows here, and not after ten minutes
    sent, answered = Counter[str](), Counter[str]()
    right, wrong, asked, errors = [0] * THREADS, [0] * THREADS, [0] * THREADS, list[str]()
    end = time.monotonic() + seconds

    def ask(number: int) -> None:
        door = ("http", "grpc")[number % 2]
        with mole.Client(where[door], key, model=file.stem, batch_rows=ROWS, patience=120) as client:
            client._channel = Counted(client._channel, sent, answered)
            for turn in range(most):
                if time.monotonic() > end:
                    return
                asked[number] += 1
                try:
                    found = client.predict(images[turn % len(images)]).probabilities
                except mole.MoleError as error:
                    errors.append(str(error))
                    continue
                is_right = np.allclose(found, expected[turn % len(images)], atol=1e-4)
                right[number] += is_right
                wrong[number] += not is_right

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    for kill in range(KILLS):
        time.sleep(max(0.0, began + seconds * (kill + 1) / (KILLS + 1) - time.monotonic()))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        time.sleep(DOWN)
        server = Server(file, "--port", ports[0], "--grpc-port", ports[1])
    for thread in threads:
        thread.join()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    log = RequestLog.beside(Ledger(key.fingerprint, key.path)).entries()
    return {
        "seconds": seconds,
        "kills": KILLS,
        "clients": THREADS,
        "rows_per_request": ROWS,
        "requests": sum(asked),
        "right_answers": sum(right),
        "wrong_answers": sum(wrong),
        "lost": sum(asked) - sum(right) - sum(wrong),
        "answered_twice": sum(count > 1 for count in answered.values()),
        "sent_again": sum(count > 1 for count in sent.values()),
        "in_the_log": len(log) - 1,  # without the first, which is not counted
        "in_the_log_without_answer": sum(not entry.answered for entry in log),
        "errors": errors[:3],
    }


if __name__ == "__main__":
    main()
