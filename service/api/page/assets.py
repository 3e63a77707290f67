"""The page's files as they are sent."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

HOME = "index.html"
_CHARTS = ("plotly", "package_data/plotly.min.js")
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_DIGEST = b"{{digest}}"
_STUBS = b"{{stubs}}"
_STYLE_ID = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')
"""The chart library adds the style sheet of its maps unless an element has this id."""


@dataclass(frozen=True)
class Asset:
    """One file.

    Attributes:
        media_type: as in Content-Type.
        body: its bytes.
    """

    media_type: str
    body: bytes

    @cached_property
    def gzipped(self) -> bytes:
        """The same compressed, once for all calls: the chart library takes a quarter of a second."""
        return gzip.compress(self.body, mtime=0)


@dataclass(frozen=True, slots=True)
class Assets:
    """All files of the page.

    Attributes:
        digest: changes with any of them. It is part of their addresses, so that browsers may keep them for good.
        home: the document, which carries that digest.
        named: everything that it loads, by file name.
    """

    digest: str
    home: Asset
    named: Mapping[str, Asset]


@cache
def page_assets() -> Assets:
    """Read them from the installed packages.

    Raises:
        FileNotFoundError: the package `plotly` is not installed whole.
    """
    own = {one.name: _read(one) for one in (files(__package__) / "files").iterdir() if one.is_file()}
    package, path = _CHARTS
    charts = files(package) / path
    own[charts.name] = _read(charts)
    digest = hashlib.sha256()
    for name, asset in sorted(own.items()):
        digest.update(f"{name} {len(asset.body)}\n".encode())
        digest.update(asset.body)
    short = digest.hexdigest()[:16]
    home = own.pop(HOME)
    # The page has no maps, and its policy allows no style from a script: an empty element holds the place.
    stubs = b"".join(b'<template id="%b"></template>' % one for one in set(_STYLE_ID.findall(own[charts.name].body)))
    body = home.body.replace(_STUBS, stubs).replace(_DIGEST, short.encode())
    return Assets(short, Asset(home.media_type, body), own)


def _read(file: Traversable) -> Asset:
    return Asset(_MEDIA_TYPES["." + file.name.rsplit(".", 1)[-1]], file.read_bytes())
