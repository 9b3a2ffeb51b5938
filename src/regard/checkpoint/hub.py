"""Models from the hub, only when asked for by a hub id."""

from __future__ import annotations

import re
from pathlib import Path

from regard.checkpoint.weights import converting
from regard.errors import FolderError, MissingExtra

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def looks_like_hub_id(name: str) -> bool:
    """`organisation/model`, and not a path: no leading dot, and its first part is no folder here."""
    return HUB_ID.fullmatch(name) is not None and not Path(name.split("/")[0]).exists()


def fetch(name: str, *, revision: str | None = None) -> Path:
    """The folder of a hub model, downloaded or from the cache. `HF_HUB_OFFLINE=1` keeps it to the cache."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra(f'loading "{name}" from the hub', "hub") from error
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(WANTED)))
    except Exception as error:  # the hub's client raises dozens of kinds, none of them ours
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise FolderError(
            f'"{name}" is no folder here, and the hub did not give it: {" ".join(lines[:2])} '
            "Check the spelling and the connection, or name a folder."
        ) from error
    if not any(folder.glob("*.safetensors")):
        raise FolderError(
            f'"{name}" has no safetensors on the hub, and pickles are never read here. '
            f"Convert it once, where you trust it: {converting(name, 'FOLDER', 'AutoModel')} "
            "(with the AutoModelFor… class of its task, so that the head is kept). Then load FOLDER."
        )
    return folder
