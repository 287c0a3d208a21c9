"""Access control: checks before every request, headers after every answer.

A page from elsewhere that is open in the same browser must not be able to read or change anything here. So

- the Host header must be this server's own: a foreign name that was made to point to this machine (DNS rebinding) is
  refused;
- a request that changes something must carry the page's token in a header, which other pages can neither read nor send;
- what a browser says another page asked for (Sec-Fetch-Site) is refused, a link to a page here aside: other pages can
  make neither work nor load here;
- every request must carry the token, in the cookie that the printed address sets: other users of this machine could
  ask as well; on loopback this may be left out;
- requests are bounded: the address, and the body before it is read whole;
- answers forbid the browser to load anything from anywhere else, to run what is written into the page, or to be framed
  by other pages (Content-Security-Policy).
"""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY = 16_384
"""bytes of a request's body"""
MOST_ADDRESS = 4_096
"""bytes of a path with its query"""
TOKEN_HEADER = b"x-pipeline-token"
COOKIE = "pipeline_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FRAME_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-same-origin"
)
"""of the report, which is shown in a frame: its style is part of it, and it has no script"""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server there.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_hosts(host: str) -> frozenset[str] | None:
    """Return the names by which a server at `host` may be asked, without the port; None for any address in numbers.

    >>> sorted(allowed_hosts("127.0.0.1"))
    ['127.0.0.1', '::1', 'localhost']
    """
    if host in ("0.0.0.0", "::", ""):
        return None
    return frozenset({host.strip("[]"), "localhost", "127.0.0.1", "::1"})


_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+))(?::\d{1,5})?")


def _host_of(header: str) -> str:
    """Return the name in a Host header, empty for one that is no name with or without a port.

    >>> _host_of("localhost:8017"), _host_of("[::1]:8017"), _host_of("[::1].evil.example")
    ('localhost', '::1', '')
    """
    match = _HOST.fullmatch(header)
    return (match[1] or match[2]).lower() if match else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    return True


class Guard:
    """Checks around an application.

    Parameters: `token` of this run, `host` that the server listens at, whether requests that only read need the token.
    """

    def __init__(self, app: App, token: str, host: str, needs_token: bool) -> None:
        self.app, self.token, self.needs_token = app, token, needs_token
        self.hosts = allowed_hosts(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _refuse(send, *refused)
            return
        entry_address = self._entry_address(scope)
        if entry_address is not None:
            cookie = f"{_cookie_name(scope)}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(send, 303, {"location": entry_address, "set-cookie": cookie})
            return
        try:
            body = await _body(receive)
        except ConnectionError:
            return
        if body is None:
            await _refuse(send, 413, f"a request here has at most {MOST_BODY:,} bytes")
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_headers(message.get("headers", ()))]
            await send(message)

        await self.app(scope, again, guarded)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Return the status and the sentence that refuse a request; None for one to answer."""
        if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > MOST_ADDRESS:
            return 414, f"an address here has at most {MOST_ADDRESS:,} letters"
        name = _host_of(headers.get(b"host", b"").decode("latin-1"))
        if not (_is_address(name) if self.hosts is None else name in self.hosts):
            return 421, "this server is not known by that name: use the address that it printed"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET, HEAD and POST are understood here"
        if _is_foreign(scope, headers):
            return 403, "another page asked for this"
        given = headers.get(TOKEN_HEADER, b"").decode("latin-1")
        if scope["method"] == "POST" and not self._is_token(given):
            return 403, "this page is from another run of the server: load it again"
        has_token = self._is_token(given) or self._is_token(_cookie(headers, _cookie_name(scope)))
        if self.needs_token and not has_token and self._entry_address(scope) is None:
            return 401, "open the address that the server printed: it has the token"
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _entry_address(self, scope: Scope) -> str | None:
        """Return the address without the token of a request that has the right one in its address; None for others."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.pop("token", [""])[0]
        if not given or scope["method"] != "GET" or not self._is_token(given):
            return None
        rest = urlencode(query, doseq=True)
        return "/" + quote(scope["path"].lstrip("/")) + (f"?{rest}" if rest else "")


def _is_foreign(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Return whether a page from elsewhere asks, by the browser's word, for more than a link to a page here."""
    if headers.get(b"sec-fetch-site", b"none") in (b"none", b"same-origin"):
        return False
    leaves = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    return not (leaves and scope["method"] == "GET" and not scope["path"].startswith("/api/"))


def _cookie_name(scope: Scope) -> str:
    """Return the name of this server's cookie: browsers do not part cookies by port, so the name has it."""
    return f"{COOKIE}_{(scope.get('server') or ('', 0))[1]}"


def _cookie(headers: dict[bytes, bytes], name: str) -> str:
    try:
        cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie else ""


async def _body(receive: Receive) -> bytes | None:
    """Read the whole body; return None if it is too long, raise `ConnectionError` if it was broken off."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError("the request was broken off")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BODY:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _headers(present: Any) -> list[tuple[bytes, bytes]]:
    """Return the headers of every answer, those aside that it sets itself."""
    wanted = {
        b"content-security-policy": POLICY.encode(),
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"no-referrer",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"cache-control": b"no-store",
    }
    there = {name.lower() for name, _ in present}
    return [(name, value) for name, value in wanted.items() if name not in there]


async def _refuse(send: Send, status: int, sentence: str) -> None:
    await _answer(send, status, {"content-type": "application/json"}, json.dumps({"error": sentence}).encode())


async def _answer(send: Send, status: int, values: dict[str, str], body: bytes = b"") -> None:
    values = values | {"content-length": str(len(body))}
    headers = [(name.encode(), value.encode("latin-1")) for name, value in values.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *_headers(())]})
    await send({"type": "http.response.body", "body": body})
