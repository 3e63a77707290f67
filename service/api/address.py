"""The address of the HTTP API, taken before anything else is started."""

from __future__ import annotations

import socket

from service.errors import AddressUnusable

_BACKLOG = 2048


class Address:
    """A socket bound to an address, which nobody else gets from then on.

    Args:
        host: address to listen on.
        port: port to listen on; 0 picks a free one.

    Raises:
        AddressUnusable: the address is taken, not allowed or not of this machine.

    Attributes:
        host: as given.
        port: the port bound to.
    """

    def __init__(self, host: str, port: int) -> None:
        try:
            family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._socket = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise AddressUnusable(host, port, error) from error
        try:
            # As servers do: the port of one that has just ended can be had again.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family is socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise AddressUnusable(host, port, error) from error
        self.host = host
        self.port: int = self._socket.getsockname()[1]

    def listen(self) -> socket.socket:
        """The socket, which from now on takes connections; it is the caller's to close.

        Raises:
            AddressUnusable: another process bound it at the same moment and was quicker.
        """
        try:
            self._socket.listen(_BACKLOG)
        except OSError as error:
            self._socket.close()
            raise AddressUnusable(self.host, self.port, error) from error
        # asyncio sets it only for sockets that name TCP as their protocol; without it an answer waits 40 ms for an ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def close(self) -> None:
        """Let go of it, where it does not listen yet."""
        self._socket.close()

    @property
    def url(self) -> str:
        """Where it is reached, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"
