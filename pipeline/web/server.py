"""The server: a socket on this machine, the application behind it, and a browser that is shown the address."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable

import uvicorn

from pipeline.errors import PipelineError
from pipeline.web.app import Explorer, make_app
from pipeline.web.safety import is_loopback

__all__ = ["DEFAULT_PORT", "Server", "listen", "new_token"]

DEFAULT_PORT = 8017


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


def listen(host: str, port: int | None) -> socket.socket:
    """A socket to serve at; without a port the usual one, or a free one where that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (port,) if port is not None else (DEFAULT_PORT, 0):
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # so asyncio sends small parts at once
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host.strip("[]"), wanted))
            found.listen(128)
            return found
        except OSError as error:
            found.close()
            if port is not None or wanted == 0:
                raise PipelineError(
                    f"cannot listen at {host}, port {wanted}: {(error.strerror or str(error)).lower()}"
                ) from None
    raise AssertionError("unreachable")


class Server:
    """An explorer at an address."""

    def __init__(self, explorer: Explorer, host: str = "127.0.0.1", port: int | None = None) -> None:
        self._socket = listen(host, port)
        self.port = int(self._socket.getsockname()[1])
        shown = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self.port}/"
        self.entrance = self.address if is_loopback(host) else f"{self.address}?token={explorer.token}"
        """what to open first: beyond loopback it has the token"""
        config = uvicorn.Config(
            make_app(explorer, host),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
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
    """Show an address in the person's browser; False where there is none."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
