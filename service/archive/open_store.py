"""The store of a URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from service.archive.errors import StoreError
from service.archive.local_store import LocalStore
from service.archive.object_store import ObjectStore
from service.archive.store import Store

_OBJECT_STORE_SCHEMES = ("s3", "gs", "az", "memory")


def open_store(url: str, *, for_writing: bool = True) -> Store:
    """Open a store by its URL: a folder (a plain path or file://), s3://, gs://, az://, or memory:// for tests.

    Credentials of object stores come from their usual environment variables.

    Args:
        url: where the store is.
        for_writing: a folder is made if absent, proven to be writable, and freed of what a crash left behind;
            otherwise it must exist and nothing in it is touched.

    Raises:
        StoreError: the scheme is unknown, or the folder can't be used.
    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        return LocalStore(Path(url), for_writing=for_writing)
    if scheme == "file":
        return LocalStore(Path(urlsplit(url).path), for_writing=for_writing)
    if scheme in _OBJECT_STORE_SCHEMES:
        return ObjectStore(url)
    known = ", ".join(f"{name}://" for name in _OBJECT_STORE_SCHEMES)
    raise StoreError(f"store {url!r}: unknown scheme {scheme}://; give a folder, file://, or one of {known}")
