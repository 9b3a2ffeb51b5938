"""A client of `regard serve`, from the standard library alone."""

from __future__ import annotations

import asyncio
import functools
import http.client
import json
import random
import threading
import time
import urllib.parse
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from regard.errors import InputError, RegardError

RETRIED = (429, 503)  # the queue is full; loading or shutting down
MAX_WAIT = 30.0  # seconds between two tries
MAX_IDLE = 32  # connections kept open
Result = TypeVar("Result")


class ServerError(RegardError):
    """An answer of the server that is no result. `status` is that of HTTP, `error_type` the server's name for it."""

    def __init__(self, message: str, *, status: int, error_type: str) -> None:
        self.status = status
        self.error_type = error_type
        super().__init__(message)


class Connections:
    """Connections to one server that are open and not in use. May be used from any thread."""

    def __init__(self, url: str, timeout: float) -> None:
        self.parts = urllib.parse.urlsplit(url)
        self.timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def request(
        self, method: str, route: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A connection and its answer. Asks again on a new connection if the server had closed an old one."""
        connection = self._take()
        while True:
            reused = connection.sock is not None
            try:
                connection.request(method, self.parts.path + route, data, dict(headers))
                return connection, connection.getresponse()
            except (ConnectionError, http.client.HTTPException):
                connection.close()
                if not reused:
                    raise
            except BaseException:
                connection.close()
                raise

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
        return kind(self.parts.netloc, timeout=self.timeout)

    def put_back(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        """Keep a connection whose answer was read to its end for the next request; close another."""
        if response.length == 0:  # read by lines, which does not close it
            response.close()
        with self._lock:
            if response.isclosed() and not response.will_close and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _list(texts: Sequence[Any]) -> list[Any]:
    """The texts as a list. Raises InputError for one string, which would be a list of characters."""
    if isinstance(texts, str):
        raise InputError("one string was given where a list of texts was expected. Write [text].")
    return list(texts)


def _field(answer: dict[str, Any] | None, name: str) -> Any:
    """One field of an answer; None where the text had an error and `on_error` is "null"."""
    return None if answer is None else answer[name]


class Client:
    """Asks a server for answers. It waits and tries again where the server is busy, loading or restarting.

        client = regard.Client("http://127.0.0.1:8000")
        client.predict(["A warm and funny film."])

    Connections stay open for the next request; `close()`, or `with regard.Client(…) as client:`, closes them. A client
    may be used from several threads.

    api_key: one of the keys of the server. timeout: seconds for one try. retries: how often to try again.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 60.0, retries: int = 5) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f'"{url}" is not the address of a server; expected one such as http://127.0.0.1:8000.')
        self.url = url.rstrip("/")
        self.retries = retries
        self._connections = Connections(self.url, timeout)
        weakref.finalize(self, self._connections.close)
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def predict(self, texts: Sequence[Any], **options: Any) -> list[dict[str, Any]]:
        """The answers of the model's task, in order; `options` are the other fields of the request (`model`, …)."""
        return self._answers("/predict", texts=_list(texts), **options)

    def embed(self, texts: Sequence[str], **options: Any) -> list[list[float]]:
        """One vector per text; None for a bad one with `on_error="null"`."""
        return [_field(answer, "embedding") for answer in self._answers("/embed", texts=_list(texts), **options)]

    def fill(self, text: str, **options: Any) -> list[list[dict[str, Any]]]:
        """The most likely words for each [MASK]."""
        masks: list[list[dict[str, Any]]] = self._answers("/fill", text=text, **options)[0]["masks"]
        return masks

    def answer(self, question: str, context: str, **options: Any) -> dict[str, Any]:
        """The answer to a question about a context."""
        return self._answers("/answer", question=question, context=context, **options)[0]

    def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """The best translation of each text; None for a bad one with `on_error="null"`."""
        return [_field(answer, "translation") for answer in self._answers("/translate", texts=_list(texts), **options)]

    def generate(self, prompt: str, **options: Any) -> str:
        """The continuation of a prompt."""
        return str(self._answers("/generate", prompt=prompt, **options)[0]["text"])

    def stream(self, prompt: str, **options: Any) -> Generator[str]:
        """The continuation of a prompt in pieces, each as soon as it is final."""
        with self._open("/generate", {"prompt": prompt, "stream": True, **options}) as response:
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line[6:])
                if "error" in event:
                    raise ServerError(event["error"], status=200, error_type=event["error_type"])
                if "text" in event:
                    yield event["text"]

    def tokenize(self, texts: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """The tokens of each text with ids and offsets."""
        return self._answers("/tokenize", texts=_list(texts), **options)

    def info(self) -> dict[str, Any]:
        """What the server says about its models."""
        return self.request("/info")

    def request(self, route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON answer of a route; POST if there is a body. Raises ServerError."""
        with self._open(route, body) as response:
            values: dict[str, Any] = json.loads(response.read())
        return values

    def _answers(self, route: str, **body: Any) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = self.request(route, body)["answers"]
        return answers

    @contextmanager
    def _open(self, route: str, body: dict[str, Any] | None) -> Iterator[http.client.HTTPResponse]:
        data = None if body is None else json.dumps(body).encode()
        connection, response = self._answered("GET" if data is None else "POST", route, data)
        try:
            yield response
        finally:
            self._connections.put_back(connection, response)

    def _answered(
        self, method: str, route: str, data: bytes | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        for number in range(self.retries + 1):
            last = number == self.retries
            try:
                connection, response = self._connections.request(method, route, data, self._headers)
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise ServerError(
                        f"{self.url} cannot be reached ({error}).", status=0, error_type="Unreachable"
                    ) from error
                wait = str(0.1 * 2**number)
            else:
                if response.status < 400:
                    return connection, response
                problem = _server_error(response)
                self._connections.put_back(connection, response)
                if last or response.status not in RETRIED:
                    raise problem
                wait = response.headers.get("Retry-After", "1")
            time.sleep(_seconds(wait))
        raise AssertionError


class AsyncClient:
    """The methods of `Client` as coroutines: `await client.predict(texts)`, `async for piece in client.stream(prompt)`.

    Each call runs in a thread.

    concurrency: calls that may be in progress at once; others wait. The other options are those of `Client`.
    """

    def __init__(self, url: str, *, concurrency: int = 16, **options: Any) -> None:
        self._client = Client(url, **options)
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="regard-client")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown(wait=False)
        self._client.close()

    async def _call(self, method: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
        call = functools.partial(method, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def predict(self, texts: Sequence[Any], **options: Any) -> list[dict[str, Any]]:
        return await self._call(self._client.predict, texts, **options)

    async def embed(self, texts: Sequence[str], **options: Any) -> list[list[float]]:
        return await self._call(self._client.embed, texts, **options)

    async def fill(self, text: str, **options: Any) -> list[list[dict[str, Any]]]:
        return await self._call(self._client.fill, text, **options)

    async def answer(self, question: str, context: str, **options: Any) -> dict[str, Any]:
        return await self._call(self._client.answer, question, context, **options)

    async def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        return await self._call(self._client.translate, texts, **options)

    async def generate(self, prompt: str, **options: Any) -> str:
        return await self._call(self._client.generate, prompt, **options)

    async def stream(self, prompt: str, **options: Any) -> AsyncIterator[str]:
        pieces = self._client.stream(prompt, **options)
        try:
            while (piece := await self._call(next, pieces, None)) is not None:
                yield piece
        finally:
            with suppress(ValueError):  # a thread still waits for the next piece: it is closed after that
                pieces.close()

    async def tokenize(self, texts: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        return await self._call(self._client.tokenize, texts, **options)

    async def info(self) -> dict[str, Any]:
        return await self._call(self._client.info)


def _seconds(wait: str) -> float:
    """How long to wait, a little more or less, so that many clients do not come back at once."""
    seconds = float(wait) if wait.replace(".", "", 1).isdecimal() else 1.0
    return min(MAX_WAIT, seconds) * random.SystemRandom().uniform(0.75, 1.25)


def _server_error(response: http.client.HTTPResponse) -> ServerError:
    status = response.status
    try:
        values = json.loads(response.read())
        return ServerError(values["error"], status=status, error_type=values["error_type"])
    except (ValueError, KeyError, TypeError, http.client.HTTPException):
        return ServerError(f"the server answered {status}.", status=status, error_type="HTTPError")
