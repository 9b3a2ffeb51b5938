"""The models of a server by name: loading, replacing one without losing a request, and one whose process died."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import FolderError, InputError, did_you_mean
from regard.serve.process.process_model import ProcessModel
from regard.serve.served import Answered, Futures, Item, Observe, Served
from regard.serve.settings import NotReady, ServeLimits, UnknownModel

LOG = logging.getLogger("regard.serve")
Result = TypeVar("Result")
RESTART_SECONDS = (0.1, 30.0)  # between two tries to start a process that ends at once: first, longest


class ModelTable:
    """The models of one server, each in a process of its own, which is replaced if it dies. The first is the default.

    options: of `regard.load`.
    """

    def __init__(self, limits: ServeLimits, *, observe: Observe = lambda name, value: None, **options: Any) -> None:
        self.limits = limits
        self.observe = observe
        self.options = options
        self.models: dict[str, Served] = {}
        self.sources: dict[str, str] = {}
        self.draining = False
        self.error: Exception | None = None  # why a model could not be loaded
        self.restarts = 0  # processes that died
        self._lock = threading.Lock()
        self._finished: Future[None] = Future()

    def start_loading(self, sources: Sequence[str]) -> None:
        """Load models in a thread; `error` is set if one cannot be loaded. Raises InputError for equal names."""
        self.sources = named_sources(sources)

        def load_or_note() -> None:
            try:
                self.load_all(sources)
            except Exception as error:
                self.error = error
            self._finished.set_result(None)

        threading.Thread(target=load_or_note, name="load", daemon=True).start()

    def when_loaded(self, call: Callable[[], None]) -> None:
        """Call when `start_loading` has ended, also with an error; at once if it has already."""
        self._finished.add_done_callback(lambda _: call())

    def load_all(self, sources: Sequence[str]) -> None:
        """Load models by name or folder."""
        self.sources = named_sources(sources)
        for name, source in self.sources.items():
            with self._lock:
                self.models[name] = self._loaded(name, source)

    def _loaded(self, name: str, source: str) -> Served:
        served = ProcessModel(name, source, self.limits, self._observe, on_death=self._replace, **self.options)
        served.wait_until_loaded()
        return served

    def _observe(self, name: str, value: float) -> None:
        self.observe(name, value)  # which may be set later

    def _replace(self, dead: ProcessModel) -> None:
        """Start the process of a model again. Runs in a thread of the one that died."""
        self.restarts += 1
        LOG.error("worker died", extra={"fields": {"model": dead.name, "exit_status": dead.exit_status}})
        wait, longest = RESTART_SECONDS
        started = time.monotonic()
        while not self.draining:
            with self._lock:
                if self.models.get(dead.name) is not dead:  # loaded again at this moment
                    return
                try:
                    new = self._loaded(dead.name, dead.source)
                except Exception as error:
                    LOG.error("worker not started", extra={"fields": {"model": dead.name, "error": str(error)}})
                else:
                    self.models[dead.name] = new
                    seconds = round(time.monotonic() - started, 3)
                    LOG.info("worker replaced", extra={"fields": {"model": dead.name, "seconds": seconds}})
                    return
            time.sleep(wait)
            wait = min(longest, 2 * wait)

    @property
    def ready(self) -> bool:
        """Whether every model is loaded and answers."""
        complete = bool(self.models) and self.sources.keys() <= self.models.keys()
        return complete and not self.draining and all(one.is_alive for one in self.models.values())

    def get(self, name: str | None) -> Served:
        """A model by name, the first one if no name was sent."""
        models = self.models
        if not models or (name is None and self.sources and next(iter(self.sources)) not in models):
            raise NotReady("the model is still being loaded. Try again in a moment.")
        if name is None:
            return next(iter(models.values()))
        if name not in models and name in self.sources:
            raise NotReady(f'the model "{name}" is still being loaded. Try again in a moment.')
        if name not in models:
            raise UnknownModel(f'no model "{name[:100]}" is loaded.{did_you_mean(name, self.sources or models)}')
        return models[name]

    def submit(self, name: str | None, kind: str, items: Sequence[Item], **options: Any) -> tuple[Served, Futures]:
        """The futures of a request, and the model that answers it."""
        return self._with(name, lambda served: served.submit(kind, items, options))

    def stream(
        self, name: str | None, prompt: str, on_piece: Callable[[str], None], **options: Any
    ) -> tuple[Served, Answered]:
        """The same for a text that is generated in pieces."""
        return self._with(name, lambda served: served.stream(prompt, options, on_piece))

    def _with(self, name: str | None, call: Callable[[Served], Result]) -> tuple[Served, Result]:
        """A model and the result of a call with it: of the new one if it was replaced at this moment."""
        while True:
            served = self.get(name)
            try:
                return served, call(served)
            except NotReady:
                if self.models.get(served.name) is served:
                    raise

    def reload(self, name: str | None = None) -> list[str]:
        """Load models again from their folders, one after the other; requests in progress keep the old one.

        Raises an error and keeps the old model where the new one cannot be loaded.
        """
        names = list(self.sources) if name is None else [self.get(name).name]
        with self._lock:
            for each in names:
                new = self._loaded(each, self.sources[each])
                old, self.models[each] = self.models[each], new
                seconds = {"seconds": self.limits.drain_seconds}
                threading.Thread(target=old.close, kwargs=seconds, name="close", daemon=True).start()
        return names

    def close(self, *, seconds: float) -> None:
        """Answer what is in progress, and stop."""
        self.draining = True
        for served in list(self.models.values()):
            served.close(seconds=seconds)


def named_sources(sources: Sequence[str]) -> dict[str, str]:
    """Sources by model name: the last part of a path, or `name=source`. Raises InputError for equal or empty names."""
    named: dict[str, str] = {}
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or "/" in name:
            name, path = Path(source).name or source, source
        if not name or not path:
            raise InputError(f'"{source}" has no {"source" if name else "name"}. Write NAME=MODEL, or MODEL alone.')
        if name in named:
            raise InputError(
                f'two models are called "{name}": {named[name]} and {path}. Name one of them: other-name={path}.'
            )
        named[name] = path
    return named


def check_folders(named: Mapping[str, str]) -> None:
    """Raise FolderError for a path that cannot be a model; the others may take minutes to load."""
    for source in named.values():
        folder = Path(source).expanduser()
        parts = folder.parts  # as `looks_like_hub_id`, whose package imports torch
        is_hub_id = len(parts) == 2 and not source.startswith((".", "~", "/")) and not Path(parts[0]).exists()
        if "/" in source and not is_hub_id and not folder.exists():
            raise FolderError(f"{source} does not exist. Expected a model folder, minilm, or a hub id.")
        if folder.is_dir() and not (folder / "config.json").is_file():
            raise FolderError(f"{source} has no config.json. Expected a model folder with config.json.")
