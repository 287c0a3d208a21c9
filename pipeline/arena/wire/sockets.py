"""Send and receive lines with time limits: socket timeouts, a match's `Limits`, the dealer's end of a connection.

Python's own timeouts call `poll` before every send and receive; a conversation of short lines spends a tenth of its
time there. So the time limits are set on the socket itself, and set again only when they change.

Where the dealer has more than one core it looks for the answer of a quick player again and again, for a fraction of a
millisecond (`SPIN_S`), before it sleeps: a core that sleeps takes longer to wake than such a player takes to answer. A
player whose last answer took longer is waited for asleep, and so is everybody on a single core.

A `Seat` is a connected player as the dealer sees it. Whatever a player does, the dealer's work for it is bounded: a
line must be complete by a deadline, which is looked at for every line and not only when nothing has come; what is
received while one answer is waited for is bounded in bytes; and a player that does not read is given up when too much
waits for it, without keeping the others waiting. Nothing here imports compiled code, so that the command line can name
the default limits in its help at once.
"""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

log = logging.getLogger(__name__)

MAX_LINE = 4096
RECEIVE_BYTES = 448
"""bytes that are read at once: several states. With more, room for them comes from the C library, not from Python, and
among situations that are remembered for long it leaves holes: over hours memory grew by hundreds of megabytes"""
MOST_RECEIVED = 1 << 18
"""bytes that a player may send before it has answered one state"""
MOST_UNREAD = 1 << 20
"""bytes that may wait for a player that does not read, beyond what the operating system holds for it"""
MOST_WARNINGS = 20
"""warnings per seat that are written out; all are counted"""
PATIENCE_S = 0.01
"""a state is first sent to the player who must answer it; the others are sent it after this time, or with the next"""
LONG_PATIENCE_S = 0.1
"""how often a player that thinks longer is looked at"""
SPIN_S = 0.0005
"""how long an answer is looked for before sleeping, if the player's last one came within this time"""


class Limits(NamedTuple):
    """Times that a dealer allows, in milliseconds; the defaults are those of the ACPC."""

    response_ms: int = 600_000
    """for one action"""
    hand_ms: int = 600_000
    """for a player's actions of one hand"""
    per_hand_ms: int = 7_000
    """times the match's hands: for all actions of a player"""
    start_ms: int = 600_000
    """until every player has connected and named its version"""


def limit(connection: socket.socket, receiving_s: float, sending_s: float | None = None) -> None:
    """Make every later receive or send that waits longer than these seconds raise BlockingIOError.

    Without `sending_s` both may wait equally long.
    """
    connection.settimeout(None)
    for option, seconds in (
        (socket.SO_RCVTIMEO, receiving_s),
        (socket.SO_SNDTIMEO, receiving_s if sending_s is None else sending_s),
    ):
        # zero would mean no limit at all
        microseconds = max(1, round(1e6 * seconds))
        # C's struct timeval: seconds and microseconds in the machine's own layout
        connection.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", *divmod(microseconds, 1_000_000)))


class PlayerLostError(Exception):
    """Raised for a player that has left, does not read or sends too much."""


@dataclass(slots=True)
class Seat:
    """A connected player."""

    number: int
    name: str
    socket: socket.socket
    buffer: bytes = b""
    """bytes received and not read yet"""
    outbox: bytes = b""
    """states that have not been sent yet"""
    limit_s: float = 0.0
    received: int = 0
    """bytes since the last answer"""
    quick: bool = False
    """its next answer is looked for without sleeping"""
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
        """Set how long a send or receive may wait from now on."""
        if seconds != self.limit_s:
            limit(self.socket, seconds)
            self.limit_s = seconds

    def send(self, more: bytes = b"") -> None:
        """Send what waits in the outbox, and `more`, without waiting; what the connection does not take stays there."""
        data = self.outbox + more if self.outbox else more
        try:
            sent = self.socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise PlayerLostError(f"{self.title} is gone ({error.strerror})") from None
        self.outbox = data[sent:]
        if len(self.outbox) > MOST_UNREAD:
            raise PlayerLostError(f"{self.title} does not read what it is sent")

    def flush(self, allowed_s: float) -> None:
        """Send all that waits in the outbox, within `allowed_s`."""
        deadline = time.perf_counter() + allowed_s
        while self.outbox:
            remaining_s = deadline - time.perf_counter()
            if remaining_s <= 0:
                raise PlayerLostError(f"{self.title} does not read what it is sent")
            self.limit(remaining_s)
            try:
                self.outbox = self.outbox[self.socket.send(self.outbox) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise PlayerLostError(f"{self.title} is gone ({error.strerror})") from None

    def line(self, since: float, allowed_s: float, waiting: Callable[[], None] = lambda: None) -> bytes | None:
        """Return the next line without its line end, or None when the time is over.

        Parameters: `allowed_s` seconds after `since` (of `time.perf_counter`) the line must be there; `waiting` is
        called whenever nothing has come for a while.
        """
        clock = time.perf_counter
        deadline, patience_s = since + allowed_s, PATIENCE_S
        awake_until = since + SPIN_S if self.quick else 0.0
        # the clock is looked at before every line: whoever never stops sending is late all the same
        while (now := clock()) < deadline:
            if self.buffer:
                line, newline, rest = self.buffer.partition(b"\n")
                if newline or len(line) >= MAX_LINE:
                    self.buffer = rest
                    return line.rstrip(b"\r")
            try:
                # a sleeping core wakes more slowly than a quick player answers: look again and again for a moment
                if now < awake_until:
                    data = self.socket.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
                else:
                    self.limit(min(patience_s, deadline - now))
                    data = self.socket.recv(RECEIVE_BYTES)
            except BlockingIOError:
                if now >= awake_until:
                    waiting()
                    patience_s = LONG_PATIENCE_S
                continue
            except OSError as error:
                raise PlayerLostError(f"{self.title} is gone ({error.strerror})") from None
            if not data:
                raise PlayerLostError(f"{self.title} left")
            self.received += len(data)
            if self.received > MOST_RECEIVED:
                raise PlayerLostError(f"{self.title} sent {self.received:,} bytes that answer nothing")
            if not self.buffer and data.find(b"\n") == len(data) - 1:  # one whole line, as nearly always
                return data.rstrip(b"\r\n") if clock() < deadline else None
            self.buffer += data
        return None
