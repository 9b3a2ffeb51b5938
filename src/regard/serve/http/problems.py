"""Errors as answers: {"error": words, "error_type": name} with a status."""

from __future__ import annotations

import math
import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from regard.errors import RegardError, shorten
from regard.serve.served import KINDS
from regard.serve.settings import NotReady, QueueFull, TooLarge, UnknownModel

STATUSES: dict[type[Exception], int] = {TooLarge: 413, QueueFull: 429, NotReady: 503, UnknownModel: 404}
HTTP_NAMES = {404: "NotFound", 405: "MethodNotAllowed", 400: "BadRequest"}
RETRY_SECONDS = "1"  # of 503
KIND = re.compile(r"(str|int|float|bool|(list|tuple|dict)\[.*\])$")  # which of several kinds a value was compared with
CALL = re.compile(r"\bmodel\.(\w+)\([^()]*\)")  # what an error recommends in Python: model.embed(texts)


def problem(status: int, message: str, kind: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as an answer. Half characters (lone surrogates) that a request had cannot be sent back."""
    message = message.encode("utf-8", "replace").decode()
    return JSONResponse({"error": message, "error_type": kind}, status, headers)


def problem_of(error: BaseException) -> JSONResponse:
    """The answer for an exception; 422 for a value that cannot be used, 500 for what the server did wrong."""
    if not isinstance(error, RegardError):
        return problem(500, f"the server failed ({type(error).__name__}). The log has more.", "InternalError")
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 422)
    headers = {}
    if isinstance(error, QueueFull):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if status == 503:
        headers["Retry-After"] = RETRY_SECONDS
    return problem(status, CALL.sub(_route, str(error)), type(error).__name__, headers)


def _route(call: re.Match[str]) -> str:
    """The route for a call that an error recommends; the call itself where there is none."""
    return f"POST /{call[1]}" if call[1] in KINDS else call[0]


def add_handlers(app: FastAPI) -> None:
    """Answer all errors of an application in this form."""

    async def regard_error(request: Request, error: Exception) -> JSONResponse:
        return problem_of(error)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return _invalid_body(error)

    async def http_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        kind = HTTP_NAMES.get(error.status_code, "HTTPError")
        message = str(error.detail)
        if error.status_code == 404:
            message = f'there is no "{shorten(request.url.path, 80)}" here. See GET /docs for all routes.'
        if error.status_code == 405:
            message = f"{request.method} is not a method of {request.url.path}. See GET /docs."
        return problem(error.status_code, message, kind, dict(error.headers or {}))

    app.add_exception_handler(RegardError, regard_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, regard_error)


def _invalid_body(error: RequestValidationError) -> JSONResponse:
    first: Any = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return problem(400, f"the body is not JSON ({shorten(str(reason), 100)}).", "InvalidJSON")
    place = [part for part in first["loc"] if part != "body" and not KIND.match(str(part))]
    name = ".".join(str(part) for part in place)
    if not place:
        return problem(
            422,
            "the body is missing or no JSON object. Send one, with Content-Type application/json.",
            "InvalidRequest",
        )
    if first["type"] == "extra_forbidden":
        return problem(
            422, f'the field "{shorten(name, 80)}" is not known. See GET /docs for the fields.', "UnknownField"
        )
    value = shorten(repr(first.get("input")), 80)
    expected = first["msg"].replace("Input should be", "expected")
    message = f'"{shorten(name, 80)}" is {value}: {shorten(expected, 200)}.'
    return problem(422, message, "InvalidField")
