"""Calls to a gateway, or to the next one if that is away."""
from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import selectors
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union
from urllib.parse import parse_qs, urlsplit

from .errors import GatewayError


class Address(NamedTuple):
    url: str  # without the token: it is shown
    token: str


def parse_address(url: str) -> Address:
    u = urlsplit(url.strip())
    if u.scheme not in ("http", "https") or not u.hostname:
        raise ValueError("a gateway is a URL such as http://127.0.0.1:7070")
    return Address(f"{u.scheme}://{u.netloc}{u.path.rstrip('/')}", parse_qs(u.query).get("token", [""])[0])


class Gateways:
    """One or more gateways of a database, of which one is in use. Any thread may call."""

    def __init__(self, gateway: Union[str, Sequence[str], None], token: Optional[str]) -> None:
        if gateway is None:
            gateway = os.environ.get("STINT_GATEWAY_URL", "")
        found = [parse_address(u) for u in (gateway.split(",") if isinstance(gateway, str) else gateway) if u.strip()]
        if not found:
            raise ValueError("which gateway? Give its URL, or set STINT_GATEWAY_URL")
        other = next((a.token for a in found if a.token), os.environ.get("STINT_TOKEN", ""))
        self.all = [Address(a.url, token or a.token or other) for a in found]
        self.current = random.choice(self.all)
        self._idle: Dict[str, List[http.client.HTTPConnection]] = {a.url: [] for a in self.all}

    def failed(self, address: Address) -> None:
        """Go on with the next, unless another thread has done that."""
        if self.current is address:
            self.current = self.all[(self.all.index(address) + 1) % len(self.all)]

    def call(self, method: str, path: str, body: Any = None, timeout: float = 15.0) -> Any:
        """The decoded answer, or GatewayError. A text as body is JSON already."""
        address = self.current
        headers = {"Authorization": f"Bearer {address.token}", "Accept": "application/json", "Content-Type": "application/json"}
        data = body if body is None or isinstance(body, str) else json.dumps(body, allow_nan=False)
        conn = self._connection(address.url, min(timeout, 5.0))
        sent = False
        try:
            conn.connect() if conn.sock is None else None
            conn.sock.settimeout(timeout)
            sent = True
            conn.request(method, f"{urlsplit(address.url).path}/api/v1{path}", data and data.encode(), headers)
            answer = conn.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as err:
            conn.close()
            self.failed(address)
            raise GatewayError(f"{method} {address.url}: {type(err).__name__}: {err}", sent=sent) from err
        self._idle[address.url].append(conn)
        if answer.status >= 500:
            self.failed(address)
        is_json = "json" in answer.headers.get("Content-Type", "")
        value = json.loads(content) if is_json else None
        if answer.status >= 300:
            problem = value if isinstance(value, dict) else {}
            raise GatewayError(f"{method} {address.url}{path}: {answer.status} {_detail(problem) or answer.reason}", answer.status, str(problem.get("type", "")))
        return value

    def close(self) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def _connection(self, url: str, timeout: float) -> http.client.HTTPConnection:
        try:
            conn = self._idle[url].pop()
        except IndexError:
            u = urlsplit(url)
            return (http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection)(u.netloc, timeout=timeout)
        with selectors.DefaultSelector() as s:
            if conn.sock is not None and s.register(conn.sock, selectors.EVENT_READ) and s.select(0):
                conn.close()  # the gateway closed it while it was idle
        return conn


def _detail(problem: Dict[str, Any]) -> str:
    said = [str(problem.get("detail") or problem.get("title") or "")]
    said += [f"{e.get('location')}: {e.get('message')}" for e in problem.get("errors") or () if str(e.get("message")) not in said[0]]
    return "; ".join(said)


def backoff() -> Iterator[float]:
    """How long to wait after failures in a row: up to 5 seconds, each time by chance."""
    return (min(5.0, 0.2 * 2.0 ** min(n, 5)) * random.uniform(0.5, 1.0) for n in itertools.count())
