"""Calls to a gateway, or to the next one if that is away."""
import http.client
import itertools
import json
import os
import random
import selectors
from typing import Any, Iterator, NamedTuple, Sequence
from urllib.parse import parse_qs, urlsplit

from .errors import GatewayError

Address = NamedTuple("Address", [("url", str), ("token", str)])  # the URL is shown, so that it has no token


def parse_address(url: str) -> Address:
    u = urlsplit(url.strip())
    if u.scheme not in ("http", "https") or not u.hostname:
        raise ValueError("a gateway is a URL such as http://127.0.0.1:7070")
    return Address(f"{u.scheme}://{u.netloc}{u.path.rstrip('/')}", parse_qs(u.query).get("token", [""])[0])


class Gateways:
    """One or more gateways of a database, of which one is in use. Any thread may call."""

    def __init__(self, gateway: str | Sequence[str] | None, token: str | None) -> None:
        urls = os.environ.get("STINT_GATEWAY_URL", "") if gateway is None else gateway
        found = [parse_address(u) for u in (urls.split(",") if isinstance(urls, str) else urls) if u.strip()]
        if not found:
            raise ValueError("which gateway? Give its URL, or set STINT_GATEWAY_URL")
        other = next((a.token for a in found if a.token), os.environ.get("STINT_TOKEN", ""))
        self.all = [Address(a.url, token or a.token or other) for a in found]
        self.current = random.choice(self.all)
        self._idle: dict[str, list[http.client.HTTPConnection]] = {a.url: [] for a in self.all}

    def failed(self, address: Address) -> None:
        """Go on with the next, unless another thread has done that."""
        if self.current is address:
            self.current = self.all[(self.all.index(address) + 1) % len(self.all)]

    def call(self, method: str, path: str, body: Any = None, timeout: float = 15.0, others: int | None = None) -> Any:
        """The decoded answer, or GatewayError. A text as body is JSON already. A gateway that is away is not asked, but another."""
        address = self.current
        conn: Any = self._connection(address.url, min(timeout, 5.0))
        headers = {"Authorization": f"Bearer {address.token}", "Accept": "application/json", "Content-Type": "application/json"}
        data = body if isinstance(body, str | None) else json.dumps(body, allow_nan=False)
        others = len(self.all) - 1 if others is None else others
        try:
            conn.sock or conn.connect()
            others = 0  # it may do what it is asked
            conn.sock.settimeout(timeout)
            conn.request(method, f"{urlsplit(address.url).path}/api/v1{path}", data and data.encode(), headers)
            answer = conn.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as err:
            conn.close()
            self.failed(address)
            if others:
                return self.call(method, path, data, timeout, others - 1)
            raise GatewayError(f"{method} {address.url}: {type(err).__name__}: {err}") from err
        self._idle[address.url].append(conn)
        if answer.status >= 500:
            self.failed(address)
        value = json.loads(content) if "json" in answer.headers.get("Content-Type", "") else {}
        if answer.status >= 300:
            problem = value.get("detail", answer.reason), *(f"{e.get('location')}: {e['message']}" for e in value.get("errors") or ())
            raise GatewayError(f"{method} {address.url}/api/v1{path}: {answer.status} {'; '.join(problem)}", answer.status)
        return value

    def close(self) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def _connection(self, url: str, timeout: float) -> Any:
        try:
            conn: Any = self._idle[url].pop()
        except IndexError:
            u = urlsplit(url)
            return (http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection)(u.netloc, timeout=timeout)
        with selectors.DefaultSelector() as s:
            if conn.sock is not None and s.register(conn.sock, selectors.EVENT_READ) and s.select(0):
                conn.close()  # the gateway closed it while it was idle
        return conn


def backoff() -> Iterator[float]:
    """How long to wait after failures in a row: up to 5 seconds, each time by chance."""
    return (min(5.0, 0.2 * 2.0 ** min(n, 5)) * random.uniform(0.5, 1.0) for n in itertools.count())
