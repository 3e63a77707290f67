"""Answers that were made, for the next reader who asks the same of the same facts."""

from __future__ import annotations

import threading
from collections import OrderedDict


class KeptAnswers:
    """The answers that were given last, by their validators, which name the question and the facts.

    Args:
        size_bytes: of all of them together; one that is larger is not kept.
    """

    def __init__(self, size_bytes: int = 32 * 2**20) -> None:
        self._size_bytes = self._room = size_bytes
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tag: str) -> bytes | None:
        """The answer; None where it is not kept."""
        with self._lock:
            if tag in self._answers:
                self._answers.move_to_end(tag)
            return self._answers.get(tag)

    def put(self, tag: str, answer: bytes) -> None:
        """Keep an answer, for others that nobody has asked for lately."""
        with self._lock:
            if len(answer) > self._size_bytes or tag in self._answers:
                return
            self._answers[tag] = answer
            self._room -= len(answer)
            while self._room < 0:
                _, oldest = self._answers.popitem(last=False)
                self._room += len(oldest)
