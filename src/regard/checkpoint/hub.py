"""Models from the hub, downloaded only for a hub id or the name of a published model."""

from __future__ import annotations

import re
from pathlib import Path

from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.weights import conversion_command
from regard.errors import FolderError, MissingExtra, shorten

PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model")
QUOTES = str.maketrans("\"'", "``")  # of the client's messages: a quote that is not closed would run into ours
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def looks_like_hub_id(name: str) -> bool:
    """`organization/model`, and not a path: no leading dot, and its first part is no folder here."""
    return HUB_ID.fullmatch(name) is not None and not Path(name.split("/")[0]).exists()


def fetch(name: str, *, revision: str | None = None) -> Path:
    """The folder of a hub model, downloaded or from the cache. With `HF_HUB_OFFLINE=1` only from the cache."""
    try:
        folder = _download(name, revision=revision)
    except Exception as error:  # the hub's client raises dozens of kinds, none of them ours
        if isinstance(error, MissingExtra):
            raise
        raise FolderError(
            f'"{name}" is not a folder here, and the hub download failed: {_reason(error)} '
            "Check the spelling and the connection, or name a folder."
        ) from error
    return _with_weights(folder, name)


def fetch_published(name: str, *, revision: str | None = None) -> Path:
    """The folder of a model that was published under a short name: downloaded, or from the cache."""
    hub_id = PUBLISHED[name]
    try:
        folder = _download(hub_id, revision=revision)
    except MissingExtra as error:
        raise MissingExtra(f'loading the published weights of "{name}" ({hub_id} on the hub)', "hub") from error
    except Exception as error:  # the hub's client raises dozens of kinds, none of them ours
        cached = _cached_under(name, revision=revision)
        if cached is None:
            raise FolderError(_how_to_get(name, hub_id, _reason(error))) from error
        folder = cached
    return _with_weights(folder, hub_id)


def _download(name: str, *, revision: str | None, local: bool = False) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra(f'loading "{name}" from the hub', "hub") from error
    return Path(snapshot_download(name, revision=revision, allow_patterns=list(PATTERNS), local_files_only=local))


def _cached_under(name: str, *, revision: str | None) -> Path | None:
    """The cached folder under the short name, which the hub used before models belonged to organizations."""
    try:
        return _download(name, revision=revision, local=True)
    except Exception:  # whatever the reason: it is not there
        return None


def _how_to_get(name: str, hub_id: str, reason: str) -> str:
    return (
        f"{name} means the published weights {hub_id} of the hub, which could not be downloaded and are not in its "
        f"cache: {reason} To get them, run this with a connection, or run `hf download {hub_id} --local-dir FOLDER` "
        f"on a machine that has one and name FOLDER here. For an untrained network of this shape: --preset {name}, "
        f'or regard.create("{name}").'
    )


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return shorten(" ".join(lines[:2]).translate(QUOTES), 300)


def _with_weights(folder: Path, name: str) -> Path:
    """The folder; raises FolderError if it has no safetensors."""
    if any(folder.glob("*.safetensors")):
        return folder
    raise FolderError(
        f"{name} has no safetensors on the hub, or not in its cache ({folder}), and pickles are never read here. "
        "If the download was cut short, repeat it with a connection. If the hub has pickles only, "
        f"convert it once, where you trust it: {conversion_command(name, 'FOLDER', 'AutoModel')} "
        "(with the AutoModelFor… class of its task, so that the head is kept). Then load FOLDER."
    )
