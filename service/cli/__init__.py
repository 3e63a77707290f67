"""The command line `litehit`: one module a command.

Modules of commands import only what declares their options; what does the work is imported when a command runs, so
that `litehit --help` answers at once.
"""

from __future__ import annotations

import signal


def main() -> int:
    """Run the command line; see `service.cli.app.main`."""
    # While modules are loaded an interrupt ends the process: there is nothing to clean up, and no fault to be traced.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from service.cli.app import main as run

    return run()
