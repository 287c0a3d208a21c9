"""Sockets whose time limits the kernel keeps.

Python's own timeouts ask with a poll before every send and receive; a conversation of short lines spends a tenth of its
time there.
"""

from __future__ import annotations

import socket
import struct

__all__ = ["limit"]


def limit(connection: socket.socket, seconds: float) -> None:
    """From now on a send or receive that waits longer than this raises BlockingIOError."""
    microseconds = max(1, round(1e6 * seconds))
    value = struct.pack("@ll", *divmod(microseconds, 1_000_000))
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
