"""Sockets whose time limits the kernel keeps, and a dealer's end of a player's socket.

Python's own timeouts ask with a poll before every send and receive; a conversation of short lines spends a tenth of its
time there.
"""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["LostError", "Seat", "limit"]

log = logging.getLogger(__name__)

MAX_LINE = 4096
MOST_WARNINGS = 20
"""per seat that are spelled out; all are counted"""
PATIENCE_S = 0.01
"""a state goes first to who must answer it; the others hear of it after this time, or with what comes next"""


def limit(connection: socket.socket, seconds: float) -> None:
    """From now on a send or receive that waits longer than this raises BlockingIOError."""
    microseconds = max(1, round(1e6 * seconds))
    value = struct.pack("@ll", *divmod(microseconds, 1_000_000))
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)


class LostError(Exception):
    """A player that cannot go on."""


@dataclass(slots=True)
class Seat:
    """A connected player."""

    number: int
    name: str
    socket: socket.socket
    buffer: bytes = b""
    outbox: bytes = b""
    """states not sent yet"""
    limit_s: float = 0.0
    hand_s: float = 0.0
    match_s: float = 0.0
    warnings: int = 0

    @property
    def title(self) -> str:
        return f"seat {self.number + 1} ({self.name})"

    def warn(self, text: str) -> None:
        self.warnings += 1
        if self.warnings <= MOST_WARNINGS:
            last = " (further warnings are only counted)" if self.warnings == MOST_WARNINGS else ""
            log.warning("WARNING: %s: %s%s", self.title, text, last)

    def limit(self, seconds: float) -> None:
        """The time for a send or receive from now on."""
        if seconds != self.limit_s:
            limit(self.socket, seconds)
            self.limit_s = seconds

    def send(self, allowed_s: float) -> None:
        """Send what waits in the outbox."""
        data, self.outbox = self.outbox, b""
        try:
            try:
                sent = self.socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                self.limit(allowed_s)
                self.socket.sendall(data[sent:])
        except BlockingIOError:
            raise LostError(f"{self.title} does not read what it is sent") from None
        except OSError as error:
            raise LostError(f"{self.title} is gone ({error.strerror})") from None

    def line(self, allowed_s: float, since: float, waiting: Callable[[], None] = lambda: None) -> bytes:
        """The next line, which must be there `allowed_s` after `since`; `waiting` is called if it is not there soon."""
        soon = PATIENCE_S
        while True:
            line, newline, rest = self.buffer.partition(b"\n")
            if newline or len(line) >= MAX_LINE:
                self.buffer = rest
                return line.rstrip(b"\r")
            left = since + allowed_s - time.perf_counter()
            self.limit(max(min(left, soon), 1e-6))
            try:
                data = self.socket.recv(MAX_LINE)
            except BlockingIOError:
                if left <= soon:
                    raise LostError(f"{self.title} did not answer within {allowed_s:g} s") from None
                soon = allowed_s
                waiting()
                continue
            except OSError as error:
                raise LostError(f"{self.title} is gone ({error.strerror})") from None
            if not data:
                raise LostError(f"{self.title} left")
            self.buffer += data
