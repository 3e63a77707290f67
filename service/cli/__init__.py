"""The command line `litehit`: one module a command.

Modules of commands import only what declares their options; what does the work is imported when a command runs, so
that `litehit --help` answers at once.
"""

from service.cli.app import main

__all__ = ["main"]
