"""Explanations of baselines that read features of words: words are removed from the text itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import InputError, did_you_mean
from regard.look.explain.explanation import ExplainedTarget
from regard.look.explain.scorer import Erased, Scorer
from regard.look.explain.targets.classes import ClassTarget
from regard.look.explain.tokenized import InputSequence, TokenizedText, WordSpan
from regard.look.explain.words import word_spans
from regard.tasks.classify import Classify

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True, eq=False)
class BaselineScorer(Scorer):
    """Every word is a token; a variant is the text without some words, answered by the task."""

    outputs: Any = field(default=None)  # from texts to (B, C) logits

    @classmethod
    def for_text(cls, model: Model, text: str, pair: str | None, target: str | None) -> BaselineScorer:
        task, _ = model.task_and_records([text if pair is None else (text, pair)])
        if not isinstance(task, Classify):
            raise InputError(f"answers of a {task.name} baseline cannot be explained; those of a network can.")
        texts = (text,) if pair is None else (text, pair)
        tokenized = _words_as_tokens(texts)

        def outputs(variants: Sequence[tuple[str, ...]]) -> Tensor:
            items = [one[0] if len(one) == 1 else one for one in variants]
            rows: list[Any] = []
            own, records = model.task_and_records(items)
            from regard.tasks.inference import answer_records

            list(
                answer_records(
                    own,
                    model.task_runner(own),
                    records,
                    model.preprocessing(),
                    device=model.device,
                    on_outputs=rows.append,
                )
            )
            return torch.from_numpy(np.stack([np.mean(row.outputs, axis=0) for row in rows]))

        probe = outputs([texts])
        return cls(model.network, tokenized, _target(task, target, probe), None, outputs=outputs)

    def erased_values(self, erased_BT: Erased) -> Tensor:
        variants = [self._without(row.tolist()) for row in erased_BT]
        unique = list(dict.fromkeys(variants))
        values: Tensor = self.outputs(unique)
        return values[[unique.index(variant) for variant in variants]]

    def _without(self, erased: Sequence[bool]) -> tuple[str, ...]:
        """The texts without some words; a full stop for a text without any."""
        texts = []
        for number, text in enumerate(self.text.texts):
            characters = list(text)
            for word in self.text.words:
                if word.sequence == number and erased[word.tokens[0]]:
                    characters[word.start : word.end] = [""] * (word.end - word.start)
            texts.append("".join(characters) if "".join(characters).strip() else ".")
        return tuple(texts)


def _words_as_tokens(texts: tuple[str, ...]) -> TokenizedText:
    spans = [(number, *span) for number, text in enumerate(texts) for span in word_spans(text)]
    words = tuple(WordSpan(number, start, end, (i,)) for i, (number, start, end) in enumerate(spans))
    return TokenizedText(
        texts=texts,
        tokens=tuple(texts[number][start:end] for number, start, end in spans),
        offsets=tuple((start, end) for _, start, end in spans),
        sequence_ids=tuple(number for number, _, _ in spans),
        erasable=(True,) * len(spans),
        words=words,
        sequences=(InputSequence(tuple(range(len(spans))), None, tuple(range(len(spans)))),),
    )


def _target(task: Classify, label: str | None, values_1C: Tensor) -> ClassTarget:
    if task.kind == "number":
        return ClassTarget(ExplainedTarget("number", "", "the predicted number"), 0, "number")
    if label is not None and label not in task.names:
        raise InputError(f'target "{label}" is not a class of this model.{did_you_mean(label, task.names)}')
    number = int(values_1C[0].argmax()) if label is None else task.names.index(label)
    name = task.names[number]
    return ClassTarget(ExplainedTarget("class", name, f'the class "{name}"'), number, task.kind, task.temperature)
