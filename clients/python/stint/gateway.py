"""The addresses of gateways, and connections that stay open."""
from __future__ import annotations

import http.client
import json
import os
import random
import selectors
import ssl
import threading
from typing import Any, List, NamedTuple, Optional, Sequence, Union
from urllib.parse import parse_qs, urlsplit

from .errors import GatewayError


class Address(NamedTuple):
    secure: bool
    host: str
    port: Optional[int]
    path: str
    token: str

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{'https' if self.secure else 'http'}://{self.host}{port}{self.path}"


def parse_address(url: str, token: Optional[str]) -> Address:
    """Read a URL. A ?token= in it counts unless a token is given."""
    u = urlsplit(url.strip())
    if u.scheme not in ("http", "https") or not u.hostname:
        raise ValueError("a gateway is a URL such as http://127.0.0.1:7070")
    token = token or parse_qs(u.query).get("token", [""])[0]
    return Address(u.scheme == "https", u.hostname, u.port, u.path.rstrip("/"), token)


class Gateways:
    """One or more gateways of a database, of which one is in use."""

    def __init__(self, gateway: Union[str, Sequence[str], None], token: Optional[str]) -> None:
        if gateway is None:
            gateway = os.environ.get("STINT_GATEWAY", "")
        urls = gateway.split(",") if isinstance(gateway, str) else list(gateway)
        self.all: List[Address] = [parse_address(u, token) for u in urls if u.strip()]
        if not self.all:
            raise ValueError("which gateway? Give its URL, or set STINT_GATEWAY")
        fallback = next((a.token for a in self.all if a.token), os.environ.get("STINT_TOKEN", ""))
        self.all = [a._replace(token=a.token or fallback) for a in self.all]
        self.current = random.choice(self.all)
        self.tls = ssl.create_default_context() if any(a.secure for a in self.all) else None
        self._lock = threading.Lock()

    def failed(self, address: Address) -> None:
        """Go on with the next, unless another thread has done that."""
        with self._lock:
            if self.current is address:
                self.current = self.all[(self.all.index(address) + 1) % len(self.all)]


class Connection:
    """A connection of one thread to the gateway in use, opened again as needed."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways
        self._address: Optional[Address] = None
        self._http: Optional[http.client.HTTPConnection] = None

    def call(self, method: str, path: str, body: Any = None, timeout: float = 15.0) -> Any:
        """The decoded answer, or GatewayError. A text as body is JSON already."""
        address = self._gateways.current
        if self._address is not address or self._is_stale():
            self.close()
        headers = {"Authorization": f"Bearer {address.token}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = (body if isinstance(body, str) else json.dumps(body, allow_nan=False)).encode()
            headers["Content-Type"] = "application/json"
        sent = False
        try:
            conn = self._http or self._connect(address, timeout)
            conn.sock.settimeout(timeout)
            sent = True
            conn.request(method, f"{address.path}/api/v1{path}", data, headers)
            answer = conn.getresponse()
            content = answer.read()
            if answer.will_close:
                self.close()
        except (OSError, http.client.HTTPException) as err:
            self.close()
            self._gateways.failed(address)
            raise GatewayError(f"{method} {address}: {type(err).__name__}: {err}", 0, sent) from err
        if answer.status >= 500:
            self._gateways.failed(address)
        try:
            value = json.loads(content) if content else None
        except ValueError:
            value = None
        if answer.status >= 300:
            raise GatewayError(f"{method} {address}{path}: {answer.status} {_detail(value, answer.reason)}", answer.status,
                               type=str(value.get("type", "")) if isinstance(value, dict) else "")
        return value

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
        self._http = None

    __del__ = close

    def _connect(self, address: Address, timeout: float) -> http.client.HTTPConnection:
        bound = min(timeout, 5.0)
        if address.secure:
            self._http = http.client.HTTPSConnection(address.host, address.port, timeout=bound, context=self._gateways.tls)
        else:
            self._http = http.client.HTTPConnection(address.host, address.port, timeout=bound)
        self._address = address
        self._http.connect()
        return self._http

    def _is_stale(self) -> bool:
        """Whether the gateway closed the connection while it was idle."""
        if self._http is None or self._http.sock is None:
            return True
        with selectors.DefaultSelector() as s:
            s.register(self._http.sock, selectors.EVENT_READ)
            return bool(s.select(0))


def _detail(problem: Any, reason: str) -> str:
    if not isinstance(problem, dict):
        return reason
    said = [str(problem.get("detail") or problem.get("title") or reason)]
    said += [f"{e.get('location')}: {e.get('message')}" for e in problem.get("errors") or () if str(e.get("message")) not in said[0]]
    return "; ".join(said)


class Connections:
    """Connections that any thread may use."""

    def __init__(self, gateways: Gateways) -> None:
        self.gateways = gateways
        self._idle: List[Connection] = []

    def call(self, method: str, path: str, body: Any = None, timeout: float = 15.0) -> Any:
        try:
            conn = self._idle.pop()
        except IndexError:
            conn = Connection(self.gateways)
        try:
            return conn.call(method, path, body, timeout)
        finally:
            self._idle.append(conn)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class Backoff:
    """How long to wait after failures in a row: up to 5 seconds, each time by chance."""

    def __init__(self) -> None:
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def next(self) -> float:
        self._failures += 1
        return min(5.0, 0.1 * 2.0 ** min(self._failures, 6)) * random.uniform(0.5, 1.0)
