"""simdjson's parser, of which each thread needs its own."""

from __future__ import annotations

import threading

import simdjson


class ThreadParser(threading.local):
    """A parser for each thread that asks.

    A parser can't be used again while objects of its last document live, so who parses a document while another one is
    looked at needs a `ThreadParser` of its own.
    """

    def __init__(self) -> None:
        self.parser = simdjson.Parser()
