"""A tiny sentence encoder: a folder of BERT with the files in which sentence-transformers stores its pooling."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.text.learn import train_tokenizer_from_texts


def write_sentence_encoder(folder: Path, texts: Iterable[str], *, layers: int = 2) -> Path:
    """Write a sentence encoder with random weights, which count as trained, and a vocabulary of these texts."""
    words = train_tokenizer_from_texts(list(texts), kind="wordpiece", size=50)
    write_folder(folder, from_preset("tiny-bert", heads={}, seed=5, vocabulary=words.size, layers=layers))
    words.save(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("regard", None)  # marks weights that were never trained
    (folder / "config.json").write_text(json.dumps(config))
    return as_sentence_encoder(folder, "mean_tokens")


def as_sentence_encoder(folder: Path, pooling: str) -> Path:
    """The folder with the files of sentence-transformers."""
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    return folder
