"""The server of the explorer: on the loopback address, behind a token; the only file with a web framework."""

from __future__ import annotations

import hmac
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

from ravine._validate import check_int
from ravine.exceptions import InvalidInputError, RavineError
from ravine.explorer.answers import Answers
from ravine.explorer.exports import EXPORTS

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route
except ImportError as error:
    raise RavineError('the explorer needs starlette and uvicorn: pip install "ravine[explore]"') from error

HOST = "127.0.0.1"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Make = Callable[["Request", Any], Any]  # an answer, from a request and its body


class Server:
    """A server in a thread of its own; `address` has the token, without which nothing is answered."""

    def __init__(self, answers: Answers, token: str, port: int = 0) -> None:
        if check_int("port", port, 0) > 65535:
            raise InvalidInputError(f"port has to be a whole number from 0 to 65535, got {port}")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise InvalidInputError(
                f"port {port} cannot be used ({error.strerror}); choose another, or 0 for any that is free"
            ) from error
        self.port = int(self._socket.getsockname()[1])
        self.address = f"http://{HOST}:{self.port}/{token}/"
        app = Guard(_application(answers, token), token, self.port)
        config = uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=2)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def start(self) -> None:
        """Start to answer, and return when it does."""
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)

    @property
    def is_running(self) -> bool:
        """Whether requests are answered."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End, after the requests that are being answered."""
        self._server.should_exit = True
        self._thread.join(5.0)
        self._socket.close()


class Guard:
    """Refuses requests with another host, from another origin, or without the token.

    The host is checked so that no name of another site can be made to point here, and the origin so that no
    other page can use the token if it ever learned it.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Before any route is looked at: a route that is forgotten here would be open to all.
        refused = self._why_refused(Headers(scope=scope), scope["path"])
        app = self.app if refused is None else Response(refused, 403, HEADERS, "text/plain")
        await app(scope, receive, send)

    def _why_refused(self, headers: Headers, path: str) -> str | None:
        if headers.get("host") not in self.hosts:
            return "This page is only for the machine that it runs on."
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "Requests from other pages are refused."
        given = path.split("/")[1] if "/" in path else ""
        if not hmac.compare_digest(given.encode(), self.token.encode()) or len(path) < len(self.token) + 2:
            return "The address lacks the token: copy it from the terminal."
        # the file that opens the page in a browser is another page, too
        opens = len(path) == len(self.token) + 2 and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not opens:
            return "Requests from other pages are refused."
        return None


def _application(answers: Answers, token: str) -> Starlette:
    """Return the routes below the token; what they answer is made of a request and its body."""

    def act(_: Request, body: Any) -> Any:
        notes = answers.session.act(body.get("action"), body.get("arguments", {}))
        return {"notes": notes, **answers.summary()}

    def export(request: Request, _: Any) -> Any:
        what = request.path_params["what"]
        if what not in EXPORTS:
            return _json({"error": f"there is no export {what}"}, 404)
        file, kind, make = EXPORTS[what]
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{file}"'}
        return Response(make(answers), 200, headers, kind)

    gets: dict[str, Make] = {
        "/": lambda request, _: _file("page.html", "text/html"),
        "/page.css": lambda request, _: _file("page.css", "text/css"),
        "/page.js": lambda request, _: _file("page.js", "text/javascript"),
        "/api/version": lambda request, _: {"version": answers.session.version},
        "/api/state": lambda request, _: answers.summary(),
        "/api/map": lambda request, _: answers.places(),
        "/api/node/{node}": lambda request, _: answers.node(_number(request.path_params["node"])),
        "/export/{what}": export,
    }
    routes = [Route(path, _handler(make), methods=["GET"]) for path, make in gets.items()]
    routes.append(Route("/api/act", _handler(act), methods=["POST"]))
    return Starlette(routes=[Mount(f"/{token}", routes=routes)])


def _handler(make: Make) -> Callable[[Request], Any]:
    """Return a handler that answers with what `make` returns, as JSON where it is no response yet.

    It runs in a worker thread, because a search takes time. Wrong input is answered with its sentence; any
    other error is ours, and logged.
    """

    async def handle(request: Request) -> Response:
        try:
            body = await _body(request) if request.method == "POST" else None
            answer = await run_in_threadpool(make, request, body)
        except RavineError as error:
            return _json({"error": str(error)}, 400)
        except Exception as error:
            path = request.scope["path"].removeprefix(request.scope["root_path"])  # which has the token
            logging.getLogger(__name__).exception("the explorer could not answer %s", path)
            text = f"an unexpected {type(error).__name__}, of which the terminal shows more: {error}"
            return _json({"error": text}, 500)
        return answer if isinstance(answer, Response) else _json(answer)

    return handle


async def _body(request: Request) -> dict[str, Any]:
    """Return the body of a request: a small object of JSON."""
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        body = None
    kind = request.headers.get("content-type", "")  # that of a form of another page is never JSON
    if not isinstance(body, dict) or not kind.startswith("application/json"):
        raise InvalidInputError("the request has to be an object of JSON, not too deeply nested")
    return body


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInputError(f"a node is a whole number, got {text!r}")
    return int(text)


def _file(name: str, kind: str) -> Response:
    text = resources.files("ravine.explorer").joinpath(name).read_text("utf-8")
    return Response(text, 200, HEADERS, kind)


def _json(content: Any, status: int = 200) -> Response:
    text = json.dumps(_finite(content), allow_nan=False)
    return Response(text, status, HEADERS, "application/json")


def _finite(content: Any) -> Any:
    """Return the content with None for numbers that JSON does not have."""
    if isinstance(content, float):
        return content if content - content == 0.0 else None
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    return [_finite(value) for value in content] if isinstance(content, list | tuple) else content
