"""Common ways to damage bytes, JSON values and files."""

from __future__ import annotations

import atexit
import copy
import functools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

LETTERS = ("\0", "\x1b[31m", "\r", "\n", "\ufeff", "\u202e", "é", "𝔘", "\U000e0001", "日本", '"', "\\", "a" * 5000)
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
    10**9,
    10**30,
    -(2**63),
    0.5,
    -0.0,
    1e308,
    1e-320,
)
JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    "1",
    [],
    {},
    [None],
    [[]],
    {"": None},
    [1, "a", None],
    {"content": 3},
    float("nan"),
)


def damaged(draw: random.Random, content: bytes) -> bytes:
    """The bytes with one to four random changes."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        content = draw.choice(BYTE_CHANGES)(draw, content)
    return content


def _place(draw: random.Random, content: bytes) -> int:
    return draw.randrange(len(content) + 1)


def _flip(draw: random.Random, content: bytes) -> bytes:
    if not content:
        return b"\xff"
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]


def _cut(draw: random.Random, content: bytes) -> bytes:
    return content[: _place(draw, content)]


def _remove(draw: random.Random, content: bytes) -> bytes:
    first, last = sorted((_place(draw, content), _place(draw, content)))
    return content[:first] + content[last:]


def _insert(draw: random.Random, content: bytes) -> bytes:
    place = _place(draw, content)
    new = draw.choice((draw.randbytes(draw.randrange(1, 20)), draw.choice(LETTERS).encode(), b"\xff\xfe", b"[" * 3000))
    return content[:place] + new + content[place:]


def _repeat(draw: random.Random, content: bytes) -> bytes:
    first, last = sorted((_place(draw, content), _place(draw, content)))
    return content[:last] + content[first:last] * draw.choice((1, 2, 20)) + content[last:]


def _recode(draw: random.Random, content: bytes) -> bytes:
    name = draw.choice(("utf-16", "utf-32", "utf-8-sig", "cp1252", "utf-7"))
    return content.decode("utf-8", "replace").encode(name, "replace")


def _noise(draw: random.Random, content: bytes) -> bytes:
    return draw.randbytes(draw.randrange(200))


BYTE_CHANGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip,
    _flip,
    _cut,
    _remove,
    _insert,
    _repeat,
    _recode,
    _noise,
)


def other_value(draw: random.Random, value: Any) -> Any:
    """A value of another type, size or range."""
    kind = draw.randrange(8)
    if kind == 0 and isinstance(value, int | float) and not isinstance(value, bool):
        return draw.choice((value + 1, value - 1, -value, value * 2, value * 10**6, _as_float(value), str(value)))
    if kind == 1 and isinstance(value, str):
        return draw.choice((value.upper(), value[:-1], value + draw.choice(LETTERS), value * 1000))
    if kind == 2 and isinstance(value, list):
        return draw.choice((value[:-1], value * 2, value[::-1], dict(enumerate(value))))
    if kind == 3:
        return draw.choice(LETTERS)
    if kind == 4:
        return nested(draw.choice((10, 200, 900, 100_000)), draw)
    return draw.choice(NUMBERS) if kind < 7 else copy.deepcopy(draw.choice(JUNK))  # later changes go into the copy


def _as_float(value: float) -> float:
    return float(value) if abs(value) < 10**300 else 1e300


class Raw(str):
    """JSON text that is put in as it is."""


def nested(depth: int, draw: random.Random) -> Raw:
    """Brackets in brackets."""
    left, right = draw.choice((("[", "]"), ('{"a":', "}")))
    return Raw(left * depth + ("1" if left != "[" else "") + right * depth)


def damaged_json(draw: random.Random, value: Any, *, limit: int = 3) -> bytes:
    """The JSON text of a value of which one to `most` parts were changed, removed or doubled."""
    value = json.loads(json.dumps(value))
    raws: dict[str, str] = {}
    for _ in range(draw.randint(1, limit)):
        value = _changed(draw, value, raws)
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5)
    for mark, raw in raws.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


def _changed(draw: random.Random, value: Any, raws: dict[str, str]) -> Any:
    """The value with a change at a random place in it, near the top more often."""
    if isinstance(value, dict | list) and value and draw.random() < 0.9:
        place = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
        if draw.random() < 0.1:
            del value[place]
        elif isinstance(value, dict) and draw.random() < 0.05:
            value[f"{place}{draw.choice(LETTERS)}"] = value.pop(place)
        else:
            value[place] = _changed(draw, value[place], raws)
        return value
    new = other_value(draw, value)
    if isinstance(new, Raw):
        mark = f"raw {len(raws)}"
        raws[mark] = new
        return mark
    return new


@functools.cache
def outside_file() -> Path:
    """A throwaway file that links of a case lead to: nothing may read it, and nothing is lost where it is written."""
    folder = Path(tempfile.mkdtemp(prefix="outside-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "secret.json").write_text("{}")
    return folder / "secret.json"


def special_file(draw: random.Random, path: Path, outside: Path | None = None) -> None:
    """Put something that is not a plain file in place of one."""
    outside = outside_file() if outside is None else outside
    if path.is_dir() and not path.is_symlink():
        return
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = draw.choice(("missing", "empty", "folder", "pipe", "sparse", "zero", "link", "loop", "dangling", "closed"))
    if kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, draw.choice((1 << 32, 1 << 40)))
    elif kind == "closed":
        path.touch(mode=0)
    elif kind != "missing":
        targets = {"zero": "/dev/zero", "link": str(outside), "loop": path.name, "dangling": "nothing"}
        path.symlink_to(targets[kind])
