"""An OpenID Connect provider on loopback, with a key of its own; it says of people what the test tells it."""

import base64
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa


class Provider:
    """`person` is who sits at the browser: the claims about them. Codes are good once, for their verifier."""

    client_id, client_secret = "steroids", "a-secret-of-the-client"

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.person: dict[str, Any] = {}
        self.codes: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}
        self.tokens: dict[str, dict[str, Any]] = {}
        self.issuer, self.is_away, self.is_cancelled = "", False, False
        self.elsewhere: dict[str, str] = {}  # addresses that it names besides its own
        self.spoiled: Iterable[bytes] | None = None  # what it answers instead of its configuration

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            **{
                name: f"{self.issuer}/{path}"
                for name, path in {
                    "authorization_endpoint": "authorize", "token_endpoint": "token",
                    "userinfo_endpoint": "userinfo", "jwks_uri": "keys",
                }.items()
            },
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            **self.elsewhere,
        }  # fmt: skip

    def authorize(self, asked: dict[str, str]) -> str:
        if self.is_cancelled:
            said = urlencode({"error": "access_denied", "state": asked["state"]})
            return f"{asked['redirect_uri']}?{said}"
        code = f"code-{len(self.codes)}"
        self.codes[code] = (self.person, asked)
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, sent: dict[str, str]) -> dict[str, Any] | None:
        person, asked = self.codes.pop(sent.get("code", ""), (None, {}))
        challenge = base64.urlsafe_b64encode(sha256(sent.get("code_verifier", "").encode()).digest()).rstrip(
            b"="
        )
        is_client = (sent.get("client_id"), sent.get("client_secret")) == (self.client_id, self.client_secret)
        if person is None or not is_client or asked.get("code_challenge") != challenge.decode():
            return None
        access = f"access-{len(self.tokens)}"
        self.tokens[access] = person
        now = int(time.time())
        about = {
            "iss": self.issuer,
            "aud": self.client_id,
            "iat": now,
            "exp": now + 300,
            "sub": person["sub"],
            "nonce": asked.get("nonce"),
            **person.get("in_token", {}),
        }
        about = {name: value for name, value in about.items() if value is not None}
        signed = jwt.encode(about, self.key, algorithm="RS256", headers={"kid": "one"})
        given = {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": signed}
        return given | person.get("in_answer", {})


@contextmanager
def running() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

        def answer(self, value: Any, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if provider.is_away:
                self.answer({}, 503)
            elif provider.spoiled is not None:
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    for piece in provider.spoiled:
                        self.wfile.write(piece)
            elif parts.path == "/.well-known/openid-configuration":
                self.answer(provider.configuration())
            elif parts.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif parts.path == "/userinfo":
                self.answer(provider.tokens[self.headers["Authorization"].removeprefix("Bearer ")])
            else:
                public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(provider.key.public_key()))
                self.answer({"keys": [public | {"kid": "one"}]})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = provider.token({name: values[0] for name, values in parse_qs(body).items()})
            self.answer(given or {"error": "invalid_grant"}, 200 if given else 400)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
