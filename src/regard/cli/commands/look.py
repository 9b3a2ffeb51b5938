"""`regard look`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Json, ModelName, check_output
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, progress_bar

if TYPE_CHECKING:
    from regard.look.server import LookServer
    from regard.look.session import LookSession

HELP = """Open a page on this machine that looks inside a model: its heads, their arithmetic, and why it answered.

Examples:
  regard look minilm "The cook who burned the soup opened a window."
  regard look runs/reviews "A warm and funny film." --compare minilm     two models side by side
  regard look runs/reviews "A warm film." --html page.html               one file that opens anywhere
  regard look runs/reviews --data reviews.csv                            words it relies on, what heads are worth
  regard look runs/reviews --port 8010 --no-browser"""

EXAMPLE = "The cook who burned the soup opened a window."


@dataclass(frozen=True)
class LookCommand:
    model: ModelName
    text: Annotated[Positional[str | None], arg(help="Text to look at first.", metavar="[TEXT]")] = None
    pair: Annotated[str | None, arg(help="Second text: a pair, or the context of a question.", metavar="TEXT")] = None
    target: Annotated[str | None, arg(help="Translation to look at; the model's own if not given.", metavar="TEXT")] = (
        None
    )
    compare: Annotated[str | None, arg(help="Second model, shown beside the first.", metavar="MODEL")] = None
    data: Annotated[
        Path | None, arg(help="Labeled data for the views over a data set: words, heads, faithfulness.", metavar="FILE")
    ] = None
    html: Annotated[
        Path | None,
        arg(help="Write the page to this file, with its data inside, instead of serving it.", metavar="FILE"),
    ] = None
    port: Annotated[int, arg(help="Port of the page; 0 is any free one.")] = 0
    host: Annotated[str, arg(help="Address to answer on; others than 127.0.0.1 need the token that is printed.")] = (
        "127.0.0.1"
    )
    no_browser: Annotated[bool, arg(help="Print the address without opening a browser.")] = False
    device: Device = "auto"
    json: Json = False


def run(command: LookCommand) -> None:
    if command.text is not None and not command.text.strip():
        raise UsageError("TEXT is empty. Give a sentence, or leave it out.")
    if command.html is not None and command.html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--html {command.html}: expected a name that ends in .html.")
    check_output(command.html, "--html", inputs=(command.data,), model=command.model)
    if command.data is not None and not command.data.exists():
        raise UsageError(f"--data {command.data}: there is no such file or folder.")
    from regard.look.api import LookApi
    from regard.look.server import LookServer
    from regard.look.session import LookDefaults, LookSession
    from regard.predict import load

    names = [command.model] if command.compare is None else [command.model, command.compare]
    models = [(_short(name), load(name, device=command.device)) for name in names]
    for _, model in models:
        model.require_tokenizer()
    defaults = LookDefaults(command.text or EXAMPLE, command.pair, command.target, command.data)
    session = LookSession(models, defaults)
    if command.html is not None:
        _write(session, command.html, json=command.json)
        return
    _serve(LookServer(LookApi(session), host=command.host, port=command.port), command)


def _write(session: LookSession, html: Path, *, json: bool) -> None:
    from regard.look.html_file import run_jobs, session_page

    with progress_bar() as bar:
        run_jobs(session, progress=bar)
        path = session_page(session, progress=bar).save(html)
    if json:
        print_json({"files": [str(path)]})
    else:
        print(path)


def _short(name: str) -> str:
    """The last part of a folder, or the name itself."""
    return Path(name).name or name


def _serve(server: LookServer, command: LookCommand) -> None:
    if command.json:
        print_json({"url": server.url})
        sys.stdout.flush()
    else:
        print(f"The page is at {server.url} (Ctrl-C stops it)", flush=True)
    if not command.no_browser:
        import webbrowser

        webbrowser.open(server.url)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


COMMAND = Command(name="look", arguments=LookCommand, help=HELP, run=run)
