"""A token endpoint on this machine, whose tokens a broker accepts or rejects."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

CLIENT, SECRET, SCOPE = "svc-quota", "t0ps3cret", "kafka"
AUDIENCE = "a-kafka"
_LOGIN = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()


class TokenEndpoint:
    """Respond to client credentials; the path selects the kind of response.

    `asked` is how often each path was requested.
    """

    def __init__(self, folder: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._secured = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "broker.pem")
        self._secured.socket = context.wrap_socket(self._secured.socket, server_side=True)
        self.closing = threading.Event()
        self.asked: list[str] = []

    @property
    def http(self) -> str:
        """Return its address in plain text."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def https(self) -> str:
        """Return its address by TLS, with the broker's certificate."""
        return f"https://127.0.0.1:{self._secured.server_port}"

    @property
    def jwks(self) -> str:
        """Return the key by which a broker verifies its tokens."""
        numbers = self._key.public_key().public_numbers()
        n, e = (_base64(one.to_bytes(256 if one > 2**32 else 3)) for one in (numbers.n, numbers.e))
        return json.dumps({"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "n": n, "e": e}]})

    def token(self, kind: str) -> str:
        """Return a token: a valid one, an `expired` one, or one signed by a `stranger`."""
        now = int(time.time())
        claims = {"sub": CLIENT, "aud": AUDIENCE, "iss": "tests", "iat": now, "exp": now + 60}
        if kind == "expired":
            claims |= {"iat": now - 7200, "exp": now - 3600}
        parts = {"alg": "RS256", "kid": "1"}, claims
        signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        key = self._stranger if kind == "stranger" else self._key
        return f"{signed}.{_base64(key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"

    def __enter__(self) -> Self:
        for server in (self._server, self._secured):
            threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.closing.set()
        for server in (self._server, self._secured):
            server.shutdown()
            server.server_close()


def _handler(endpoint: TokenEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Respond as the path selects."""
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            path = self.path.removeprefix("/").partition("?")[0]
            endpoint.asked.append(path)
            status, answer = _answer(endpoint, path, form, self.headers["Authorization"])
            with suppress(OSError):  # who asked may have gone meanwhile
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{endpoint.http}/token")
                self.end_headers()
                self.wfile.write(answer.encode())

        def log_message(self, *_words: Any) -> None:
            """Log nothing."""

    return Handler


def _answer(
    endpoint: TokenEndpoint, path: str, form: Mapping[str, list[str]], login: str
) -> tuple[int, str]:
    if path == "silent":
        endpoint.closing.wait(10)
    if path in {"busy", "elsewhere"}:
        return {"busy": 503, "elsewhere": 302}[path], ""
    if path == "page":
        return 200, "<html>"
    if login != f"Basic {_LOGIN}":
        told = f"no such client: {base64.b64decode(login.removeprefix('Basic ')).decode()}\n"
        return 401, json.dumps({"error": "invalid_client", "error_description": told})
    if form != {"grant_type": ["client_credentials"], "scope": [SCOPE]}:
        return 400, json.dumps({"error": "invalid_scope"})
    answer = {"access_token": endpoint.token(path), "token_type": "Bearer", "expires_in": 60}
    return 200, json.dumps(answer)


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
