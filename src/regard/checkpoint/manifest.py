"""The list of files that regard wrote to a folder: only these are deleted when the folder is overwritten."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from regard.digests import has_valid_digest, with_digest
from regard.errors import RegardError
from regard.foreign import open_regular_file, path_inside, read_bytes
from regard.text.tokenizer import TARGET_FOLDER

MANIFEST = ".regard.json"
STEMS = ("model", "regard")  # names of the weights: of transformers' format, and of our own
KINDS = ("{}.safetensors", "{}-?????-of-?????.safetensors", "{}.safetensors.index.json")
WEIGHTS = tuple(kind.format(stem) for stem in STEMS for kind in KINDS)
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "features.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    *("source.spm", "target.spm", f"{TARGET_FOLDER}/*"),
)
MODEL = (
    *WEIGHTS,
    *TOKENIZER,
    *("config.json", "generation_config.json", "modules.json", "sentence_bert_config.json"),
    "config_sentence_transformers.json",
)
CARD, RUN, METRICS, CURVES = "README.md", "run.json", "metrics.jsonl", "curves.png"
REPORT = "report.html"
RUN_FILES = (CARD, RUN, METRICS, CURVES, REPORT)
START = 4096  # bytes of a file that are read to recognize it


def files_of(folder: Path) -> set[str]:
    """Every file below the folder, links to folders among them, by its path in it."""
    every = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in every}


def write_manifest(folder: Path, names: Collection[str]) -> None:
    content = with_digest({"about": "files that regard wrote and may replace or delete", "files": sorted(names)})
    (folder / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def owned(folder: Path) -> set[str]:
    """The files of a folder that regard wrote: those in its manifest.

    In a folder without a manifest (of an older version or another program) these are the files of the model and of a
    training run, recognized by their content.
    """
    present = files_of(folder)
    stored = _json(folder / MANIFEST)
    if has_valid_digest(stored) and isinstance(stored.get("files"), list):
        return present & {MANIFEST, *(name for name in stored["files"] if isinstance(name, str))}
    return {name for name in present if _is_recognized(folder, name)} | (present & {MANIFEST})


def _is_recognized(folder: Path, name: str) -> bool:
    if matches(name, WEIGHTS):
        return True
    if matches(name, MODEL):
        config, tokenizer = _json(folder / "config.json"), _json(folder / "tokenizer.json")
        model = "model_type" in config or "architectures" in config
        return model or (matches(name, TOKENIZER) and "model" in tokenizer)
    trained = {"regard", "task"} <= _json(folder / RUN).keys()
    if (folder / name).is_symlink():
        return False
    if name == METRICS:
        first = _start(folder / METRICS).partition("\n")[0]
        return not first or '"kind"' in first
    if name == CARD:
        return trained and "\n- regard\n" in _start(folder / CARD)
    return trained and name in (RUN, CURVES, REPORT)


def tokenizer_files(names: set[str]) -> set[str]:
    """The files that belong to a tokenizer."""
    return {name for name in names if matches(name, TOKENIZER)}


def matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if there is no valid one."""
    try:
        content = json.loads(read_bytes(path_inside(path.parent, path.name)))
    except (RegardError, OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _start(path: Path) -> str:
    try:
        with open_regular_file(path_inside(path.parent, path.name)) as file:
            return file.read(START).decode("utf-8", "replace")
    except OSError:
        return ""
