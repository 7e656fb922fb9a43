"""OTLP receivers that answer as a test tells them, and keep what arrived."""

from __future__ import annotations

import gzip
import ssl
import threading
from collections import deque
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, cast

import grpc


class Request(NamedTuple):
    """A request, decompressed: its path or method, headers or metadata in lower case, body, and
    (over HTTP) its client.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    client: object = None


class Receiver:
    """What arrived, and the next answers: an HTTP status or a `grpc.StatusCode`; without any,
    success.
    """

    def __init__(self) -> None:
        self.url = ""
        self.came: list[Request] = []
        self.answers: deque[Any] = deque()


@contextmanager
def over_http(context: ssl.SSLContext | None = None) -> Generator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {key.lower(): value for key, value in self.headers.items()}
            body = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
            receiver.came.append(Request(self.path, headers, body, self.client_address))
            self.send_response(receiver.answers.popleft() if receiver.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its base names it so
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    receiver.url = (
        f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    )
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def over_grpc(credentials: Any = None) -> Generator[Receiver]:
    receiver = Receiver()

    class Router(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            def handle(body: bytes, context: Any) -> bytes:
                metadata = {key: str(value) for key, value in context.invocation_metadata()}
                receiver.came.append(Request(handler_call_details.method, metadata, body))
                if receiver.answers:
                    context.abort(receiver.answers.popleft(), "as told")
                return b""

            return cast("Any", grpc).unary_unary_rpc_method_handler(handle)

    with ThreadPoolExecutor(2) as pool:
        server: Any = cast("Any", grpc).server(pool, handlers=(Router(),))
        if credentials is None:
            receiver.url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        else:
            receiver.url = f"https://127.0.0.1:{server.add_secure_port('127.0.0.1:0', credentials)}"
        server.start()
        try:
            yield receiver
        finally:
            server.stop(0).wait()
