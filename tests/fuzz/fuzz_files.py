"""Word vectors in every format and settings files (TOML), damaged."""

from __future__ import annotations

import gzip
import lzma
import random
import struct
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.mutate import damaged, outside_file, special_file

WORDS = ("a", "small", "dog", "größe", "日本")
TEXT = "".join(f"{word} {' '.join(f'{number * 0.25:.3f}' for number in range(8))}\n" for word in WORDS).encode()
BINARY = b"5 8\n" + b"".join(word.encode() + b" " + struct.pack("<8f", *range(8)) + b"\n" for word in WORDS)
SETTINGS = b"""
preset = "tiny-bert"
epochs = 2
lr = 1e-3
out = "runs/mine"
[columns]
text = "review"
label = "stars"
[lora]
rank = 4
"""
PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def prepare() -> None:

    outside_file()


def fuzz(draw: random.Random, folder: Path) -> None:
    from regard.cli.commands.train import TrainCommand
    from regard.cli.flags.toml import read_config
    from regard.word_vectors.files import load_vectors

    name, content = draw.choice(
        (("v.txt", TEXT), ("v.vec", b"5 8\n" + TEXT), ("v.bin", BINARY), ("run.toml", SETTINGS))
    )
    ending = "" if name == "run.toml" else draw.choice(list(PACKED))
    path = folder / f"{name}{ending}"
    if draw.random() < 0.1:
        special_file(draw, path)
        if path.is_symlink():  # a user who names a link means what it leads to
            path.unlink()
    elif draw.random() < 0.5:
        path.write_bytes(PACKED[ending](damaged(draw, content)))
    else:
        path.write_bytes(damaged(draw, PACKED[ending](content)))
    if name == "run.toml":
        read_config(path, TrainCommand)
    else:
        vectors = load_vectors(path)
        assert len(vectors) == len(vectors.table)
