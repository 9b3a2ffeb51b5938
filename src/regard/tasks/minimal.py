"""Minimal pairs: of two sentences that differ in one point of grammar, is the good one likelier for a language model?

A causal model has a likelihood for a sentence. A masked one has a pseudo-likelihood (Salazar et al. 2020): each token
is hidden in turn, and what it costs to guess it from all the others is added up.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.data.framing import Frame
from regard.data.records import NOWHERE, Place
from regard.errors import InputError
from regard.metrics.confidence import Score, wilson
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.tasks.task import Reading

GOOD, BAD, KIND = "sentence_good", "sentence_bad", "UID"
PAIRS = 256  # pairs held at once


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """A sentence, one that is wrong, and the name of what makes it wrong, where there is one."""

    good: str
    bad: str
    kind: str | None = None
    place: Place = NOWHERE


@dataclass(frozen=True)
class Preferred:
    """How often the good sentence was the likelier; also by kind, where there are several."""

    rows: int
    scores: dict[str, Score]
    seconds: float
    main: str = "accuracy"


@dataclass(frozen=True)
class _Look:
    """A sequence to run, the places whose words are asked for, and the words."""

    text: int
    ids: list[int]
    at: list[int]
    words: list[int]


def read_minimal_pairs(path: str | Path) -> list[MinimalPair]:
    """JSON lines with `sentence_good` and `sentence_bad`, as BLiMP has them; `UID` names the kind."""
    path = Path(path).expanduser()
    found = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a text file: {error}.") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            found.append(_pair(line, Place(path.name, number)))
    if not found:
        raise InputError(f'{path} holds no pair. Expected a JSON object a line, with "{GOOD}" and "{BAD}".')
    return found


def _pair(line: str, place: Place) -> MinimalPair:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise place.fault("this line is not JSON", expected=f'{{"{GOOD}": …, "{BAD}": …}}') from error
    texts = []
    for name in (GOOD, BAD):
        text = row.get(name) if isinstance(row, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise place.fault("there is no sentence here", column=name, expected="a text")
        texts.append(text)
    if texts[0] == texts[1]:
        raise place.fault("the two sentences are the same", mend="Leave the pair out: there is nothing to prefer.")
    kind = row.get(KIND)
    return MinimalPair(texts[0], texts[1], None if kind is None else str(kind), place)


def minimal_pairs(
    network: Transformer,
    reading: Reading,
    pairs: Sequence[MinimalPair],
    *,
    batch_tokens: int = 8192,
    dtype: torch.dtype = torch.float32,
) -> Preferred:
    """The share of pairs whose good sentence is the likelier one; a tie is no preference."""
    if not pairs:
        raise InputError("no pair was given; expected at least one.")
    began = time.monotonic()
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for start in range(0, len(pairs), PAIRS):
        part = pairs[start : start + PAIRS]
        texts = [text for pair in part for text in (pair.good, pair.bad)]
        places = [pair.place for pair in part for _ in range(2)]
        found = likelihoods(network, reading, texts, places=places, batch_tokens=batch_tokens, dtype=dtype)
        for pair, good, bad in zip(part, found[::2], found[1::2], strict=True):
            for name in ("accuracy", f"accuracy {pair.kind}"):
                seen[name] += 1
                right[name] += good > bad
    kinds = sorted(name for name in seen if name != "accuracy") if len(seen) > 2 else []
    scores = {name: wilson(right[name], seen[name]) for name in ("accuracy", *kinds)}
    return Preferred(len(pairs), scores, round(time.monotonic() - began, 3))


@torch.inference_mode()
def likelihoods(
    network: Transformer,
    reading: Reading,
    texts: Sequence[str],
    *,
    places: Sequence[Place] | None = None,
    batch_tokens: int = 8192,
    dtype: torch.dtype = torch.float32,
) -> list[float]:
    """The log-likelihood of each text, or its pseudo-log-likelihood where the model guesses hidden words."""
    device = next(network.parameters()).device
    sums = torch.zeros(len(texts), dtype=torch.float64)
    for looks in _batches(_looks(network, reading, texts, places), batch_tokens):
        batch = Ragged.of([look.ids for look in looks], device=device)
        starts = [0, *batch.bounds[1:].tolist()]
        at = [start + place for start, look in zip(starts, looks, strict=False) for place in look.at]
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            logits: Tensor = network(batch, at=torch.tensor(at, device=device)).logits
        words = torch.tensor([word for look in looks for word in look.words], device=device)
        told = -torch.nn.functional.cross_entropy(logits.float(), words, reduction="none")
        owners = torch.tensor([look.text for look in looks for _ in look.at])
        sums.index_add_(0, owners, told.double().cpu())
    return sums.tolist()


def _looks(
    network: Transformer, reading: Reading, texts: Sequence[str], places: Sequence[Place] | None
) -> Iterator[_Look]:
    """One look a text for a model of next words, one a token for a model of hidden words."""
    words, frame = reading.tokenizer, Frame.of(reading.tokenizer)
    hides = "masked" in network.heads
    if not hides and "language" not in network.heads:
        raise InputError(
            "this model has no head for words, hidden or next, so no sentence is likelier for it than another. Use a "
            "pretrained language model."
        )
    if hides and words.mask is None:
        raise InputError("this model guesses hidden words, but its tokenizer has no token to hide them with ([MASK]).")
    for text, ids in enumerate(words.ids_batch(texts, special=False)):
        framed = frame.single(ids)
        first, whole = framed.parts[0].at, framed.ids
        if not hides and first == 0 and (begin := words.bos if words.bos is not None else words.eos) is not None:
            first, whole = 1, [begin, *whole]  # so that the first word has a likelihood too
        if not ids or (reading.longest is not None and len(whole) > reading.longest):
            what = f"this sentence has {len(ids)} tokens"
            mend = f"Use sentences of 1 to {reading.longest} tokens with the special ones."
            raise (NOWHERE if places is None else places[text]).fault(what, mend=mend)
        if hides:
            assert words.mask is not None
            for at in range(first, first + len(ids)):
                yield _Look(text, [*whole[:at], words.mask, *whole[at + 1 :]], [at], [whole[at]])
        else:
            known = range(max(first, 1), first + len(ids))
            yield _Look(text, whole, [at - 1 for at in known], [whole[at] for at in known])


def _batches(looks: Iterable[_Look], tokens: int) -> Iterator[list[_Look]]:
    held: list[Any] = []
    size = 0
    for look in looks:
        if held and size + len(look.ids) > tokens:
            yield held
            held, size = [], 0
        held.append(look)
        size += len(look.ids)
    if held:
        yield held
