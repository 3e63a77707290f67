"""Roles as processes that are killed again and again: at a planted point, or from outside at some moment."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from service.crash_points import VARIABLE, CrashPoint
from service.settings import Role
from tests.cli_harness import RunningService
from tests.faults.deployment import Deployment

_PATIENCE_SECONDS = 30  # with a planted point that is not reached
_TOGETHER_SHARE = 0.3  # of the kills from outside take every process with them
_MOST_PASSES = 6
_LONGEST_SECONDS = 2.5

_BEGUN = {Role.LANES: "lane_begun", Role.ARCHIVE: "archive_partition_begins"}
_POINTS = {
    Role.LANES: (
        CrashPoint.BEFORE_PRODUCE,
        CrashPoint.MID_TRANSACTION,
        CrashPoint.BEFORE_COMMIT,
        CrashPoint.AFTER_COMMIT,
        CrashPoint.MID_SNAPSHOT,
        CrashPoint.MID_PUBLISH,
    ),
    Role.ARCHIVE: (CrashPoint.MID_PUBLISH, CrashPoint.AFTER_PUBLISH),
}
_TIMED = {Role.LANES: 3, Role.ARCHIVE: 2}


@dataclass(frozen=True)
class Doom:
    """How a process is to die.

    Attributes:
        point: planted in it; None: killed from outside.
        passes: which pass of the point.
        at_work: from outside: the seconds count from when it works, not from its start.
        seconds: until it is killed from outside.
        together: and the others with it.
    """

    point: CrashPoint | None
    passes: int = 0
    at_work: bool = True
    seconds: float = _PATIENCE_SECONDS
    together: bool = False

    @property
    def name(self) -> str:
        """Under which it is counted."""
        if self.point is not None:
            return self.point.value
        return "at work" if self.at_work else "at start"


def dooms(role: Role, random: random.Random) -> Iterator[Doom]:
    """Dooms of a role without end: a pack of all its points and of kills from outside, shuffled, and again."""
    while True:
        pack = [Doom(point, passes=random.randint(1, _MOST_PASSES)) for point in _POINTS[role]]
        for number in range(_TIMED[role]):
            together = random.random() < _TOGETHER_SHARE
            pack.append(Doom(None, 0, number > 0, random.uniform(0, _LONGEST_SECONDS), together))
        random.shuffle(pack)
        yield from pack


class Victim:
    """A process that is started anew whenever it has died.

    Args:
        deployment: what it is a process of.
        role: what it does.
        number: which of the role's processes.
        fate: how it dies, time after time.
    """

    def __init__(self, deployment: Deployment, role: Role, number: int, fate: Iterator[Doom]) -> None:
        self._deployment = deployment
        self._role = role
        self._number = number
        self._fate = fate
        self.start(next(fate))

    def start(self, doom: Doom | None) -> None:
        """Start it; without a doom it lives."""
        planted = {VARIABLE: f"{doom.point}:{doom.passes}"} if doom is not None and doom.point is not None else {}
        self.doom = doom
        self.service: RunningService = self._deployment.serve(self._role, self._number, **planted)
        self._count_from: float | None = None

    def look(self) -> str | None:
        """How it died, if it has; otherwise it is killed when its time has come."""
        code = self.service.process.poll()
        if code is not None:
            return self._died(code)
        doom = self.doom
        assert doom is not None
        if self._count_from is None and (not doom.at_work or self.service.saw(_BEGUN[self._role])):
            self._count_from = time.monotonic()
        if self._count_from is not None and time.monotonic() > self._count_from + doom.seconds:
            self.service.process.kill()
            return self._died(self.service.process.wait())
        return None

    def kill(self) -> str:
        """Kill it now."""
        self.service.process.kill()
        return self._died(self.service.process.wait())

    def again(self) -> None:
        """Start it with its next doom."""
        self.service.close()
        self.start(next(self._fate))

    def _died(self, code: int) -> str:
        self.service.saw("")
        assert code == -signal.SIGKILL, f"{self._role} {self._number} ended with {code}: {self.service.events[-5:]}"
        assert self.doom is not None
        return self.doom.name


def kill_until(victims: Iterable[Victim], kills: int, meanwhile: Iterator[None]) -> Counter[str]:
    """Let processes die and start them again until so many have died; what they died of, by name.

    Args:
        victims: the processes; afterwards they run, and nothing kills them any more.
        kills: so many.
        meanwhile: taken one step of at each look.
    """
    victims = list(victims)
    died: Counter[str] = Counter()
    while died.total() < kills:
        next(meanwhile)
        for victim in victims:
            cause = victim.look()
            if cause is None:
                continue
            died[cause] += 1
            if victim.doom is not None and victim.doom.together:
                others = [one for one in victims if one is not victim]
                died.update(f"together: {one.kill()}" for one in others)
                for one in others:
                    one.again()
            victim.again()
    for victim in victims:
        victim.service.close()
        victim.start(None)
    return died
