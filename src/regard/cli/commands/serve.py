"""`regard serve`."""

from __future__ import annotations

import functools
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Dtype, Json
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json
from regard.errors import MissingExtra

if TYPE_CHECKING:
    from regard.look.api import LookApi
    from regard.serve.http.mounted import Page

LOOK_TEXT = "The cook who burned the soup opened a window."
HELP = """Answer requests over HTTP with one or several models: classes, entities, answers, vectors, text.

Examples:
  regard serve runs/reviews                                   on http://127.0.0.1:8000, with its routes at /docs
  regard serve minilm runs/reviews --port 8010                two models, chosen by "model" in a request
  regard serve search=minilm reviews=runs/reviews             the same with other names
  regard serve runs/reviews --look                            with the page that looks inside it at /look
  regard serve minilm --host 0.0.0.0 --api-key-file keys.txt  for other machines, with one API key per line

  curl http://127.0.0.1:8000/predict -H 'Content-Type: application/json' -d '{"text": "A warm and funny film."}'

SIGTERM finishes the requests in progress and stops. SIGHUP, or POST /models/reload, loads the folders again without
losing a request. The log is on stderr, one JSON object per line; it never has the texts."""


@dataclass(frozen=True)
class ServeCommand:
    model: Annotated[
        Positional[tuple[str, ...]],
        arg(help="Models: folders, published names or hub ids, each also as NAME=MODEL.", metavar="MODEL ..."),
    ]
    port: Annotated[int, arg(help="Port to listen on; 0 is any free one.")] = 8000
    host: Annotated[str, arg(help="Address to listen on; others than 127.0.0.1 need --api-key-file or --no-auth.")] = (
        "127.0.0.1"
    )
    api_key_file: Annotated[
        Path | None, arg(help="File with API keys, one per line; requests send one as Authorization: Bearer KEY.")
    ] = None
    no_auth: Annotated[bool, arg(help="Allow any address without API keys.")] = False
    batch_tokens: Annotated[int, arg(help="Tokens per batch.")] = 1024
    max_wait_ms: Annotated[
        float, arg(help="Milliseconds that a batch waits for texts that are still being tokenized.")
    ] = 2.0
    max_body_bytes: Annotated[int, arg(help="Bytes of a request.")] = 4 << 20
    max_texts: Annotated[int, arg(help="Texts per request.")] = 1024
    max_text_tokens: Annotated[int, arg(help="Tokens of a text.")] = 100_000
    max_request_tokens: Annotated[int, arg(help="Tokens of all texts of a request.")] = 200_000
    max_queue_tokens: Annotated[int, arg(help="Tokens that wait for a model; above it requests get status 429.")] = (
        400_000
    )
    max_header_bytes: Annotated[int, arg(help="Bytes of the headers of a request.")] = 16 << 10
    max_connections: Annotated[int, arg(help="Requests in progress at once; above it requests get status 503.")] = 1000
    header_seconds: Annotated[float, arg(help="Seconds for the headers of a request to arrive.")] = 10.0
    request_seconds: Annotated[float, arg(help="Seconds that a request may take.")] = 60.0
    drain_seconds: Annotated[float, arg(help="Seconds for the requests in progress after SIGTERM.")] = 30.0
    device: Device = "auto"
    dtype: Dtype = "fp32"
    engine: Annotated[
        Literal["auto", "torch", "int8", "fastest"],
        arg(
            help="What computes, as in regard predict; fastest measures each at the start, and the int8 engines round, "
            "so that answers differ from those of torch."
        ),
    ] = "auto"
    look: Annotated[
        bool, arg(help="Add the page of `regard look` for the first model at /look; only without API keys.")
    ] = False
    json: Json = False


def run(command: ServeCommand) -> None:
    if not command.model:
        raise UsageError("no model was given. Write it after the command: regard serve runs/reviews.")
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "prometheus_client")):
        raise MissingExtra("the server", "serve")
    from regard.serve.api_keys import ApiKeys, check_address, read_api_keys
    from regard.serve.listener import address, open_socket
    from regard.serve.model_table import ModelTable, check_folders, named_sources
    from regard.serve.settings import ServeLimits

    keys = ApiKeys() if command.api_key_file is None else read_api_keys(command.api_key_file)
    check_address(command.host, keys, no_auth=command.no_auth)
    if command.look and keys:
        raise UsageError("--look and --api-key-file contradict each other: a browser sends no API key. Leave one out.")
    limits = ServeLimits(**{name: getattr(command, name) for name in ServeLimits.__dataclass_fields__})
    check_folders(named_sources(command.model))  # before anything is opened or loaded
    listener = open_socket(command.host, command.port)
    table = ModelTable(limits, device=command.device, dtype=command.dtype, engine=command.engine)
    _print_address(address(listener, command.host), json=command.json)
    table.start_loading(command.model)
    from regard.serve.http.run_server import run_server  # while the models are being loaded

    run_server(table, listener, keys=keys, pages={"/look": _look_page(command)} if command.look else {})


def _look_page(command: ServeCommand) -> Page:
    """The page that looks inside the first model. It loads the model when it is first opened."""
    from regard.serve.http.mounted import PageAnswer
    from regard.serve.model_table import named_sources

    ((name, source), *_) = named_sources(command.model).items()

    @functools.cache
    def look_api() -> LookApi:
        from regard.look.api import LookApi
        from regard.look.session import LookDefaults, LookSession
        from regard.predict import load

        model = load(source, device=command.device)
        return LookApi(LookSession([(name, model)], LookDefaults(LOOK_TEXT, None, None, None)))

    def page(method: str, path: str, body: bytes) -> PageAnswer:
        from regard.look.api import HEADERS

        answer = look_api().handle(method, path, body)
        return PageAnswer(answer.status, answer.content_type, answer.body, HEADERS)

    return page


def _print_address(url: str, *, json: bool) -> None:
    if json:
        print_json({"url": url})
    else:
        print(f"Listening on {url}, with its routes at {url}/docs (Ctrl-C stops it)")
    sys.stdout.flush()


COMMAND = Command(name="serve", arguments=ServeCommand, help=HELP, run=run)
