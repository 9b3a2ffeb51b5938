"""A client of `regard serve`, from the standard library alone."""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

from regard.errors import InputError, RegardError

RETRIED = (429, 503)  # the queue is full; loading or shutting down
MAX_WAIT = 30.0  # seconds between two tries


class ServerError(RegardError):
    """An answer of the server that is no result. `status` is that of HTTP, `error_type` the server's name for it."""

    def __init__(self, message: str, *, status: int, error_type: str) -> None:
        self.status = status
        self.error_type = error_type
        super().__init__(message)


class Client:
    """Asks a server for answers. It waits and tries again where the server is busy, loading or restarting.

        client = regard.Client("http://127.0.0.1:8000")
        client.predict(["A warm and funny film."])

    api_key: one of the keys of the server. timeout: seconds for one try. retries: how often to try again.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 60.0, retries: int = 5) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f'"{url}" is not the address of a server; expected one such as http://127.0.0.1:8000.')
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.retries = retries
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def predict(self, texts: Sequence[Any], **options: Any) -> list[dict[str, Any]]:
        """The answers of the model's task, in order; `options` are the other fields of the request (`model`, …)."""
        return self._answers("/predict", texts=list(texts), **options)

    def embed(self, texts: Sequence[str], **options: Any) -> list[list[float]]:
        """One vector per text."""
        return [answer["embedding"] for answer in self._answers("/embed", texts=list(texts), **options)]

    def fill(self, text: str, **options: Any) -> list[list[dict[str, Any]]]:
        """The most likely words for each [MASK]."""
        masks: list[list[dict[str, Any]]] = self._answers("/fill", text=text, **options)[0]["masks"]
        return masks

    def answer(self, question: str, context: str, **options: Any) -> dict[str, Any]:
        """The answer to a question about a context."""
        return self._answers("/answer", question=question, context=context, **options)[0]

    def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """The best translation of each text."""
        return [answer["translation"] for answer in self._answers("/translate", texts=list(texts), **options)]

    def generate(self, prompt: str, **options: Any) -> str:
        """The continuation of a prompt."""
        return str(self._answers("/generate", prompt=prompt, **options)[0]["text"])

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
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
        return self._answers("/tokenize", texts=list(texts), **options)

    def info(self) -> dict[str, Any]:
        """What the server says about its models."""
        return self.request("/info")

    def request(self, route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON answer of a route; POST if there is a body. Raises ServerError."""
        with self._open(route, body) as response:
            values: dict[str, Any] = json.load(response)
        return values

    def _answers(self, route: str, **body: Any) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = self.request(route, body)["answers"]
        return answers

    def _open(self, route: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{route}", data, self._headers)
        for number in range(self.retries + 1):
            last = number == self.retries
            try:
                return urllib.request.urlopen(request, timeout=self.timeout)
            except urllib.error.HTTPError as error:
                with error:
                    if last or error.code not in RETRIED:
                        raise _server_error(error) from error
                    wait = error.headers.get("Retry-After", "1")
            except (urllib.error.URLError, ConnectionError) as error:
                if last:
                    raise ServerError(
                        f"{self.url} cannot be reached ({error}).", status=0, error_type="Unreachable"
                    ) from error
                wait = str(0.1 * 2**number)
            time.sleep(_seconds(wait))
        raise AssertionError


class AsyncClient:
    """The methods of `Client` as coroutines: `await client.predict(texts)`. Each call runs in a thread."""

    def __init__(self, url: str, **options: Any) -> None:
        self._client = Client(url, **options)

    async def predict(self, texts: Sequence[Any], **options: Any) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._client.predict, texts, **options)

    async def embed(self, texts: Sequence[str], **options: Any) -> list[list[float]]:
        return await asyncio.to_thread(self._client.embed, texts, **options)

    async def fill(self, text: str, **options: Any) -> list[list[dict[str, Any]]]:
        return await asyncio.to_thread(self._client.fill, text, **options)

    async def answer(self, question: str, context: str, **options: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._client.answer, question, context, **options)

    async def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        return await asyncio.to_thread(self._client.translate, texts, **options)

    async def generate(self, prompt: str, **options: Any) -> str:
        return await asyncio.to_thread(self._client.generate, prompt, **options)

    async def tokenize(self, texts: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._client.tokenize, texts, **options)

    async def info(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._client.info)


def _seconds(wait: str) -> float:
    """How long to wait, a little more or less, so that many clients do not come back at once."""
    seconds = float(wait) if wait.replace(".", "", 1).isdecimal() else 1.0
    return min(MAX_WAIT, seconds) * random.SystemRandom().uniform(0.75, 1.25)


def _server_error(error: urllib.error.HTTPError) -> ServerError:
    try:
        values = json.loads(error.read())
        return ServerError(values["error"], status=error.code, error_type=values["error_type"])
    except (ValueError, KeyError, TypeError):
        return ServerError(f"the server answered {error.code}.", status=error.code, error_type="HTTPError")
