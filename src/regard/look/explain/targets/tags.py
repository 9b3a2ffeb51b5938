"""The logit of a word's tag, or of all tags of an entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.errors import InputError, did_you_mean, setting
from regard.look.explain.explanation import ExplainedTarget
from regard.look.explain.targets.classes import tokenize
from regard.look.explain.targets.target import Target
from regard.look.explain.tokenized import InputSequence, TokenizedText
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.tasks.tag import EntitiesAnswer, Tag, TagAnswer

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True)
class TokenTarget(Target):
    """The mean logit of one class or token of the vocabulary at each position; `numbers` are the classes."""

    numbers: tuple[int, ...] = ()

    def read(self, output: Output, batch: Ragged, positions_BP: Tensor) -> Tensor:
        """(B, 2) the mean logit and the mean probability."""
        assert output.logits is not None
        logits_BPC = output.logits.float().unflatten(0, positions_BP.shape)
        index_BP1 = torch.tensor(self.numbers, device=logits_BPC.device).expand(positions_BP.shape).unsqueeze(-1)
        picked_BP = logits_BPC.gather(-1, index_BP1).squeeze(-1)
        chances_BP = (picked_BP - logits_BPC.logsumexp(-1)).exp()
        return torch.stack((picked_BP.mean(1), chances_BP.mean(1)), 1)

    def score(self, values_BC: Tensor) -> Tensor:
        return values_BC[:, 0]

    def probability(self, values_BC: Tensor) -> Tensor:
        return values_BC[:, 1]


def tag_target(model: Model, task: Tag, text: str, target: str | None) -> tuple[TokenizedText, Target]:
    """The target for `WORDS` or `WORDS=TAG` of the text; the most probable entity (or the first word) if None."""
    (answer,) = model.predict([text])
    assert isinstance(answer, TagAnswer)
    tokenized = tokenize(model, text, None)
    start, end, label = _span(answer, task, text, target)
    words = [word for word in tokenized.words if word.start < end and word.end > start]
    if not words:
        raise InputError(f'"{text[start:end]}" has no token in the text.')
    tags = _tags(task, label, len(words))
    sequence, positions = window_positions(tokenized, [word.tokens[0] for word in words])
    kind = "entity" if task.iob and label != "O" else "tag"
    name = f'the {kind} "{label}" of "{text[start:end]}"'
    info = ExplainedTarget("tag", label, name, tuple(positions))
    numbers = tuple(task.names.index(tag) for tag in tags)
    return one_window(tokenized, sequence), TokenTarget(info, numbers)


def _span(answer: TagAnswer, task: Tag, text: str, target: str | None) -> tuple[int, int, str]:
    """The characters of the words and their label: that which is predicted, unless the target names one."""
    predicted = answer.entities if isinstance(answer, EntitiesAnswer) else getattr(answer, "words", ())
    if target is None:
        if predicted:
            best = max(predicted, key=lambda span: span.score) if task.iob else predicted[0]
            return best.start, best.end, best.label
        first = text.split()[0]
        return text.index(first), text.index(first) + len(first), task.names[0]
    words, _, label = target.partition("=")
    kinds = sorted({name.partition("-")[2] or name for name in task.names}) if task.iob else list(task.names)
    if not words or words not in text:
        raise InputError(_no_words(words, kinds, answer, text))
    start = text.index(words)
    end = start + len(words)
    if label and label not in kinds and label not in task.names:
        raise InputError(f'"{label}" is not a tag of this model.{did_you_mean(label, kinds)}')
    if not label:
        label = next((one.label for one in predicted if one.start < end and one.end > start), task.names[0])
    return start, end, label


def _no_words(words: str, kinds: Sequence[str], answer: TagAnswer, text: str) -> str:
    """Why a target names no words of the text, and what to write."""
    spans = answer.entities if isinstance(answer, EntitiesAnswer) else getattr(answer, "words", ())
    example = spans[0].text if spans else text.split()[0]
    if words in kinds:
        return f'target "{words}" is a tag. Say of which words: {setting("target", f"{example}={words}")}.'
    return (
        f'target "{words}" is not in the text. Give words of the text, such as "{example}", or words and a tag: '
        f'"{example}={kinds[0]}". The tags are {", ".join(kinds)}.'
    )


def _tags(task: Tag, label: str, count: int) -> list[str]:
    """A tag for each word of a span."""
    if not task.iob or label in task.names:
        return [label] * count
    return [f"B-{label}", *[f"I-{label}"] * (count - 1)]


def window_positions(text: TokenizedText, tokens: Sequence[int]) -> tuple[InputSequence, list[int]]:
    """The window that has all these tokens, the more in its middle the better, and their positions in it."""
    choices = [one for one in text.sequences if set(tokens) <= set(one.index)] or list(text.sequences[:1])

    def context(one: InputSequence) -> int:
        places = [one.index.index(token) for token in tokens if token in one.index]
        return min(min(places, default=0), len(one.index) - 1 - max(places, default=0))

    chosen = max(choices, key=context)
    return chosen, [chosen.index.index(token) for token in tokens if token in chosen.index]


def one_window(text: TokenizedText, sequence: InputSequence) -> TokenizedText:
    """The text with one of its windows; tokens outside it have no part in the answer."""
    inside = set(sequence.index)
    erasable = tuple(flag and i in inside for i, flag in enumerate(text.erasable))
    note = None
    if len(text.sequences) > 1:
        note = f"The text is read in {len(text.sequences)} windows; the answer depends on the words of one of them."
    return replace(text, sequences=(sequence,), erasable=erasable, note=note)
