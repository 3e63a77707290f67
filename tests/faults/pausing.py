"""`litehit`, but where a crash point would kill the process it pauses (SIGSTOP) until somebody wakes it."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace

from service import crash_points
from service.cli import main

vars(crash_points)["signal"] = SimpleNamespace(SIGKILL=signal.SIGSTOP, pthread_kill=signal.pthread_kill)

if __name__ == "__main__":
    sys.exit(main())
