"""The server: a socket on this machine, the application behind it, and a browser that is shown the address."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.runtime.errors import PipelineError
from pipeline.web.app import Explorer, make_app
from pipeline.web.safety import is_loopback

DEFAULT_PORT = 8017
MOST_CONNECTIONS = 128
"""at a time; a browser has six"""
TIMEOUT_S = 15.0
"""seconds within which a request must be whole, and an answer must go on being read"""


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def open_socket(host: str, port: int | None) -> socket.socket:
    """Return a socket to serve at; without a port the usual one, or a free one where that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (port,) if port is not None else (DEFAULT_PORT, 0):
        # with the protocol named, asyncio sends small parts at once
        server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server_socket.bind((host.strip("[]"), wanted))
            server_socket.listen(128)
            return server_socket
        except OSError as error:
            server_socket.close()
            if port is not None or wanted == 0:
                raise PipelineError(
                    f"cannot listen at {host}, port {wanted}: {(error.strerror or str(error)).lower()}"
                ) from None
    raise AssertionError("unreachable")


class TimeLimitedProtocol(H11Protocol):
    """HTTP with a time limit: for the rest of a request, and for the reader of an answer.

    uvicorn itself waits for ever once the first byte of a request is there.
    """

    timeout_s = TIMEOUT_S

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_whole = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.timeout_keep_alive_task is not None
        if is_whole:
            self._stop_timer()
        else:
            self._start_timer()

    def on_response_complete(self) -> None:
        self._stop_timer()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def _start_timer(self) -> None:
        """Close the connection after the timeout, unless the timer runs already."""
        if self._timer is None:
            self._timer = self.loop.call_later(self.timeout_s, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server:
    """An explorer served at an address; on loopback it may let in everybody who has an account on this machine."""

    def __init__(
        self,
        explorer: Explorer,
        host: str = "127.0.0.1",
        port: int | None = None,
        *,
        needs_token: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        if not needs_token and not is_loopback(host):
            raise PipelineError(f"at {host} others than this machine can ask: leave --no-token out")
        self._socket = open_socket(host, port)
        self.port = int(self._socket.getsockname()[1])
        shown = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self.port}/"
        self.entrance = f"{self.address}?token={explorer.token}" if needs_token else self.address
        """what to open first"""
        config = uvicorn.Config(
            make_app(explorer, host, needs_token=needs_token),
            http=type("Protocol", (TimeLimitedProtocol,), {"timeout_s": timeout_s}),
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=max(1, round(2 * timeout_s)),
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Serve until interrupted; `started` is called when the first request can come."""

        def wait() -> None:
            while not self._server.started and not self._server.should_exit:
                time.sleep(0.01)
            if self._server.started:
                started()

        threading.Thread(target=wait, daemon=True).start()
        self._server.run(sockets=[self._socket])

    def run_in_thread(self) -> threading.Thread:
        """Serve beside what else this process does, for tests and measurements; returns when requests can come."""
        ready = threading.Event()
        thread = threading.Thread(target=lambda: self.run(ready.set), daemon=True)
        thread.start()
        if not ready.wait(30):
            raise PipelineError("the server did not start")
        return thread

    def stop(self) -> None:
        """End `run`."""
        self._server.should_exit = True


def open_browser(address: str) -> bool:
    """Show an address in the person's browser; return False where there is none."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
