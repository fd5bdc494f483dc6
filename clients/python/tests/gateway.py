"""What the tests share: a real gateway, kinds of their own, and a wire that can be cut."""
import os
import socket
import threading
import time
import unittest
import uuid
from contextlib import contextmanager
from urllib.parse import urlsplit

import stint

URL = os.environ.get("STINT_TEST_GATEWAY", "")
TOKEN = os.environ.get("STINT_TEST_TOKEN") or (stint.gateway.parse_address(URL).token if URL else "")


def eventually(f, timeout=20.0):
    """The first true value of f."""
    end = time.monotonic() + timeout
    while True:
        value = f()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout}s; the last value was {value!r}")
        time.sleep(0.02)


@unittest.skipUnless(URL, "STINT_TEST_GATEWAY is not set: the URL of a running gateway")
class GatewayCase(unittest.TestCase):
    def setUp(self):
        self.client = stint.Client(URL, TOKEN)
        self.addCleanup(self.client.close)
        self.kind = f"{self._testMethodName}-{uuid.uuid4().hex[:8]}"

    def worker(self, **options):
        return stint.Worker(**{"gateway": URL, "token": TOKEN, "slots": 4, **options})

    @contextmanager
    def working(self, f, grace=1, handler=None, **options):
        """A worker that does jobs of self.kind by f."""
        w = self.worker(**options)
        w.handler(self.kind, **(handler or {}))(f)
        try:
            w.start()
            eventually(lambda: w._members)
            yield w
        finally:
            w.stop(grace)

    def do(self, f, args=None, handler=None, within=20, **options):
        """The result of one job that f does."""
        with self.working(f, handler=handler):
            self.id = self.client.enqueue(self.kind, args, **options)
            return self.client.result(self.id, within)

    def fails(self, f, *args, **options):
        with self.assertRaises(stint.JobFailed) as raised:
            self.do(f, *args, **options)
        return raised.exception

    def attempts(self, id=None):
        """The attempts of a job. An engine that does not know the kind yet may have handed it back."""
        return [a for a in self.client.job(id or self.id).get("attempts") or [] if a["outcome"] != "returned"]


class Wire:
    """A TCP proxy to the gateway, whose connections can be cut, or left hanging."""

    def __init__(self):
        address = urlsplit(URL)
        self.target = (address.hostname, address.port or 80)
        self.mode = "open"  # or cut, or mute: the gateway hears, and its answers are lost
        self.heard = []  # the first line of each request
        self.open = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}{address.path.rstrip('/')}"
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, mode):
        self.mode = mode
        if mode == "cut":
            for s in self.open:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.set("cut")
        self.listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if self.mode == "cut":
                near.close()
                continue
            far = socket.create_connection(self.target)
            self.open += [near, far]
            threading.Thread(target=self._copy, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._copy, args=(far, near, False), daemon=True).start()

    def _copy(self, source, sink, requests):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if requests and b" HTTP/1.1\r\n" in data:
                    self.heard.append(data.split(b" HTTP/1.1\r\n")[0].decode())
                if requests or self.mode == "open":
                    sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
