"""Masked language modeling, with next sentence prediction or without: the pretraining of BERT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batching.examples import LEARN, Examples, ExamplesBuilder, Inputs
from regard.data.batching.framing import Frame, single_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE, MaskSettings, Unit, mask_fixed, mask_tokens, max_masked
from regard.data.corpus.word_starts import BEGINS, WordStarts
from regard.data.records import DocumentRecord, Record
from regard.errors import InputError
from regard.metrics.language_meters import MaskedCounts, MaskedMeter
from regard.metrics.meter import Meter
from regard.model.transformer import Output
from regard.tasks.task import Answer, Loss, Task
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, repr=False)
class MaskedAnswer(Answer):
    """How many of the masked tokens of a text were predicted correctly, and their negative log-likelihood."""

    right: int = 0
    count: int = 0
    nll: float = 0.0
    follows: bool | None = None


@dataclass(frozen=True)
class Masked(Task):
    """Random tokens of every batch are masked and predicted; with `follows` also whether the second text comes next.

    Masking (MLM) and next sentence prediction (NSP) are those of BERT (Devlin et al. 2019,
    https://arxiv.org/abs/1810.04805): of the selected 15 % of the tokens, 80 % are replaced by [MASK], 10 % by a random
    token, and 10 % stay as they are, so that the network must represent every token.
    """

    name: ClassVar[str] = "masked"
    title: ClassVar[str] = "masked language model"
    record: ClassVar[type[Any]] = DocumentRecord
    pipeline_tag: ClassVar[str] = "fill-mask"
    example_call: ClassVar[str] = 'fill("a [MASK] text")'
    command: ClassVar[str] = "fill"
    command_example: ClassVar[str] = '"a [MASK] text"'
    model_heads: ClassVar[tuple[str, ...]] = ("masked", "replaced", "next")
    language_model: ClassVar[bool] = True

    masks: MaskSettings
    follows: bool = False

    @classmethod
    def of(
        cls,
        tokenizer: Tokenizer,
        *,
        vocabulary: int | None = None,
        follows: bool = False,
        rate: float = 0.15,
        unit: Unit = "token",
    ) -> Self:
        """The task for a tokenizer; `vocabulary` is the size of the network's vocabulary if that is larger."""
        if tokenizer.mask is None:
            raise InputError(
                "this tokenizer has no mask token ([MASK]), so masked language modeling is not possible with it. "
                "Use another objective, or learn a WordPiece vocabulary: regard tokenizer FILE --out DIR"
            )
        if unit == "word":
            WordStarts.from_tokenizer(tokenizer)  # an error where they are not known
        special = tuple(sorted(set(tokenizer.special.values())))
        return cls(MaskSettings(tokenizer.mask, vocabulary or tokenizer.size, special, rate=rate, unit=unit), follows)

    @classmethod
    def plain_text_task(cls, tokenizer: Tokenizer, *, vocabulary: int, has_settings: bool) -> Task | None:
        """Folders from elsewhere do not say how tokens were masked: then as in BERT."""
        return None if has_settings else cls.of(tokenizer, vocabulary=vocabulary)

    @classmethod
    def from_records(cls, records: Iterable[Record], *, tokenizer: Tokenizer | None = None, **settings: Any) -> Self:
        if tokenizer is None:
            raise InputError("masked language models are trained with regard pretrain, not with regard train.")
        known = {name: settings[name] for name in ("vocabulary", "follows", "rate", "unit") if name in settings}
        return cls.of(tokenizer, **known)

    def settings(self) -> dict[str, Any]:
        return {"follows": self.follows, "masks": {**asdict(self.masks), "special": list(self.masks.special)}}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        masks = dict(settings["masks"])
        return cls(MaskSettings(**{**masks, "special": tuple(masks["special"])}), bool(settings.get("follows", False)))

    @property
    def heads(self) -> dict[str, int]:
        return {"masked": 0, "next": 2} if self.follows else {"masked": 0}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        """Texts split into windows without overlap: every token can be masked once."""
        builder, frame = ExamplesBuilder(segments=preprocessing.segments), Frame.of(preprocessing.tokenizer)
        starts = WordStarts.from_tokenizer(preprocessing.tokenizer) if self.masks.unit == "word" else None
        texts = [record.text for record in records if isinstance(record, DocumentRecord)]
        for row, ids in enumerate(preprocessing.tokenizer.ids_batch(texts, special=False)):
            for cut in single_windows(frame, ids, max_tokens=preprocessing.max_tokens, overlap=0.0):
                begins = {} if starts is None else {BEGINS: starts(np.array(cut.ids))}
                builder.add(row, cut.ids, cut.segments, by_token={LEARN: np.zeros(len(cut), np.int8), **begins})
        return builder.build()

    def prepare(self, inputs: Inputs) -> Inputs:
        tokens, learn_N = inputs.tokens, inputs[LEARN] != IGNORE
        begins_N = inputs[BEGINS] != 0 if self.masks.unit == "word" else None
        if inputs.fixed_shape:
            positions = max_masked(tokens.tokens, self.masks.rate, unit=self.masks.unit)
            masked = mask_fixed(tokens.ids, self.masks, positions=positions, words=begins_N, valid=learn_N)
            words = masked.labels
        else:
            masked = mask_tokens(tokens.ids, self.masks, words=begins_N)
            words = torch.where(learn_N[masked.positions], masked.labels, IGNORE)
        return replace(
            inputs, tokens=replace(tokens, ids=masked.ids), at=masked.positions, by_position={"words": words}
        )

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """Cross-entropy of the masked tokens, plus that of the next sentence label.

        As in BERT the two means are added. The sum over pairs is scaled to the number of masked tokens, so that
        dividing by that number once gives the sum of both means; in a step of several micro-batches, a pair of a
        micro-batch with more masked tokens weighs a little more.
        """
        assert output.logits is not None
        words, count = summed_cross_entropy(output.logits, inputs["words"])
        if not self.follows or "next" not in inputs:  # plain text has no pairs
            return Loss(words, count)
        assert output.next_sentence is not None
        pairs, many = summed_cross_entropy(output.next_sentence, inputs["next"])
        return Loss(words + pairs * (count / many.clamp(min=1)), count)

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        assert inputs.at is not None
        logits_MV, words_M = output.logits.float(), inputs["words"]
        keep_M = words_M != IGNORE
        values_M3 = torch.stack(
            (
                (logits_MV.argmax(1) == words_M).double(),
                keep_M.double(),
                F.cross_entropy(logits_MV, words_M, reduction="none", ignore_index=IGNORE).double(),
            ),
            dim=1,
        )
        sums_B3 = values_M3.new_zeros(len(inputs.tokens), 3).index_add_(
            0, inputs.tokens.sequence_ids[inputs.at], values_M3
        )
        follows: list[bool | None] = [None] * inputs.rows
        if self.follows and output.next_sentence is not None and "next" in inputs:
            follows = (output.next_sentence.argmax(1) == inputs["next"])[: inputs.rows].tolist()
        rows = sums_B3[: inputs.rows].tolist()
        return [
            MaskedCounts(int(right), int(count), nll, next_right)
            for (right, count, nll), next_right in zip(rows, follows, strict=True)
        ]

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        right, count, nll = (sum(one[part] for one in outputs) for part in range(3))
        return MaskedAnswer(
            len(outputs), right=right, count=count, nll=nll, follows=outputs[0].next_sentence if outputs else None
        )

    def meter(self) -> Meter:
        return MaskedMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, MaskedAnswer)
        meter.add(MaskedCounts(answer.right, answer.count, answer.nll, answer.follows), None)


def summed_cross_entropy(logits_NC: Tensor, target_N: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy summed over the rows that have a target, and their number."""
    sum_ = F.cross_entropy(logits_NC.float(), target_N, ignore_index=IGNORE, reduction="sum")
    return sum_, (target_N != IGNORE).sum().float()
