"""Translation, or any other task from text to text, with an encoder-decoder network."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.config import Config
from regard.data.batching.examples import Examples, ExamplesBuilder, Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.corpus.sentences import split_sentences
from regard.data.records import Record, TranslateRecord
from regard.errors import InputError
from regard.metrics.meter import Meter
from regard.metrics.translation import TranslationMeter, signatures
from regard.model.bag import BagNetwork
from regard.model.network import Network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.transformer import Output
from regard.tasks.greedy import DecodedSequence, greedy_decode
from regard.tasks.recipe import Recipe, translation_recipe
from regard.tasks.task import Answer, Loss, Task, reject_label_settings
from regard.text.tokenizer import Tokenizer

LONGER = 2  # maximum length of a translation as a multiple of its source,
MORE = 10  # plus this many tokens


@dataclass(frozen=True, eq=False)
class TranslationOutput(Output):
    """The decoded sequences, next to the logits of the reference translation."""

    written: tuple[DecodedSequence, ...] = ()


@dataclass(frozen=True, repr=False)
class TranslationAnswer(Answer):
    """The translation and its log-probability. A long text is translated in windows, a few sentences each."""

    translation: str = ""
    score: float = 0.0  # log-probability

    def display(self) -> str:
        return f"{self.translation or '(nothing)'}  {self.score:.3f}"


@dataclass(frozen=True)
class Translate(Task):
    """`label_smoothing` is the probability mass spread over the output vocabulary."""

    name: ClassVar[str] = "translate"
    title: ClassVar[str] = "translation model"
    record: ClassVar[type[Any]] = TranslateRecord
    pipeline_tag: ClassVar[str] = "translation"
    example_call: ClassVar[str] = 'translate(["a text"])'
    command: ClassVar[str] = "translate"
    model_heads: ClassVar[tuple[str, ...]] = ("language",)
    separate_vocabularies: ClassVar[bool] = True
    fixed_shapes: ClassVar[bool] = False
    network_kind: ClassVar[str | None] = "encoder-decoder"
    max_dev_rows: ClassVar[int | None] = 500

    label_smoothing: float = 0.0
    tokenizer: Tokenizer | None = field(default=None, compare=False, repr=False)  # what answers are written with

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, class_balance: str = "none", label_smoothing: float = 0.0, **_: Any
    ) -> Self:
        reject_label_settings("translations have none", class_balance=class_balance)
        for record in records:
            _target(record)
            if isinstance(record, TranslateRecord) and not record.source.strip():
                raise record.place.error(
                    "this row has an empty source text", column="source", fix="Leave it out of both files."
                )
        return cls(label_smoothing=label_smoothing)

    @classmethod
    def recipe(cls, config: Config | None, rows: int, *, gpu: bool = False) -> Recipe:
        return Recipe() if config is None else translation_recipe(config, rows, gpu=gpu)

    def settings(self) -> dict[str, Any]:
        return {"label_smoothing": self.label_smoothing}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls(label_smoothing=float(settings.get("label_smoothing", 0.0)))

    @property
    def score_note(self) -> str:
        return "The texts were translated with greedy decoding; beam search usually scores higher."

    @property
    def heads(self) -> dict[str, int]:
        return {"language": 0}

    @property
    def signatures(self) -> dict[str, str]:
        return signatures()

    def bind(self, preprocessing: Preprocessing) -> Self:
        return replace(self, tokenizer=preprocessing.tokenizer.output_tokenizer)

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        pairs = [record for record in records if isinstance(record, TranslateRecord)]
        start, max_tokens = start_token(preprocessing), preprocessing.max_tokens
        target_tokenizer = preprocessing.tokenizer.output_tokenizer
        (before, after), (ahead, end) = special_frame(preprocessing.tokenizer), special_frame(target_tokenizer)
        budget = None if max_tokens is None else max_tokens - len(before) - len(after)
        texts = [_target(pair) for pair in pairs] if labeled else []
        targets = [[*ahead, *ids, *end] for ids in target_tokenizer.ids_batch(texts, special=False)]
        builder, aim = ExamplesBuilder(), ExamplesBuilder()
        long = 0
        for row, cuts in enumerate(source_chunks(pairs, preprocessing, budget)):
            aims = targets[row] if labeled else [IGNORE]
            if labeled and (len(cuts) > 1 or (max_tokens is not None and len(aims) > max_tokens)):
                aims, long = [IGNORE], long + 1
            for cut in cuts:
                limit = LONGER * len(cut) + MORE
                limit = limit if max_tokens is None else min(limit, max_tokens - 1)
                values = {"start": start, "end": end[-1], "max_new_tokens": limit}
                builder.add(row, [*before, *cut, *after], by_sequence=values)
                aim.add(row, [start, *aims[:-1]], by_token={"word": np.array(aims, np.int64)})
        if long:
            warnings.warn(
                f"{long} of {len(pairs)} pairs are longer than the {max_tokens} tokens of a sequence: too long to "
                "be learned from, they have no part in the loss. Split them into sentences to use them.",
                UserWarning,
                stacklevel=2,
            )
        return builder.build(target=aim.build())

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """Cross-entropy of each target token given those before it, with label smoothing (Vaswani et al. 2017)."""
        assert output.logits is not None
        word_N = inputs["word"]
        keep_N = word_N != IGNORE
        losses_N = F.cross_entropy(
            output.logits.float(), word_N, reduction="none", ignore_index=IGNORE, label_smoothing=self.label_smoothing
        )
        return Loss(torch.where(keep_N, losses_N, 0.0).sum(), keep_N.sum().float())

    @property
    def predicts_classes(self) -> bool:
        return True

    def log_probabilities(self, output: Output, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Of each token of the reference translation."""
        assert output.logits is not None
        return output.logits.float().log_softmax(-1), (inputs["word"] != IGNORE).float()

    def run(self, network: Network, inputs: Inputs) -> Output:
        """The logits of the reference translation, and what the network decodes by itself."""
        assert not isinstance(network, BidirectionalNetwork | BagNetwork)
        start, end = (int(inputs[name][0]) for name in ("start", "end"))  # the same in every row
        written = greedy_decode(
            network, inputs.tokens, start=start, end=end, max_new_tokens=inputs["max_new_tokens"].clamp(min=1).tolist()
        )
        return self.with_written(network, inputs, written)

    def with_written(self, network: Network, inputs: Inputs, written: Iterable[DecodedSequence]) -> TranslationOutput:
        """The decoded sequences, next to the logits of the reference translation."""
        output = super().run(network, inputs)
        return TranslationOutput(output.hidden, output.logits, memory=output.memory, written=tuple(written))

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert isinstance(output, TranslationOutput)
        return list(output.written)[: inputs.rows]

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        assert self.tokenizer is not None
        parts = [self.tokenizer.decode_generated(one.ids).strip() for one in outputs]
        return TranslationAnswer(len(outputs), translation=" ".join(parts), score=sum(one.score for one in outputs))

    def meter(self) -> Meter:
        return TranslationMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, TranslationAnswer)
        meter.add(answer.translation, _target(record))

    def show_target(self, record: Record) -> str:
        return _target(record)

    def show_answer(self, answer: Answer) -> str:
        assert isinstance(answer, TranslationAnswer)
        return answer.translation


def _target(record: Record) -> str:
    """The reference translation; an error where the row has none."""
    assert isinstance(record, TranslateRecord)
    if not record.target.strip():
        raise record.place.error(
            "this row has no translation", column="target", fix="Translate it, or leave it out of both files."
        )
    return record.target


def special_frame(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens before and after every text; always with an end token, so that decoding can stop."""
    before, after = tokenizer.surrounding_ids
    if after:
        return before, after
    end = tokenizer.eos if tokenizer.eos is not None else tokenizer.sep
    if end is None:
        raise InputError(
            "this tokenizer has no token for the end of a text (eos), so a decoder could never stop. Learn one that "
            "has: regard tokenizer FILE --kind unigram --out DIR"
        )
    return before, (end,)


def start_token(preprocessing: Preprocessing) -> int:
    """The token a target starts with: as the model folder says, else the padding token."""
    target_tokenizer = preprocessing.tokenizer.output_tokenizer
    for choice in (
        preprocessing.start,
        target_tokenizer.pad,
        target_tokenizer.cls,
        target_tokenizer.bos,
        target_tokenizer.eos,
    ):
        if choice is not None:
            return choice
    return special_frame(target_tokenizer)[1][-1]


def source_chunks(
    pairs: Sequence[TranslateRecord], preprocessing: Preprocessing, budget: int | None
) -> list[list[list[int]]]:
    """The ids of each source text; one that is too long is split at sentences."""
    texts = [preprocessing.prefix + pair.source for pair in pairs]
    chunks = [[ids] for ids in preprocessing.tokenizer.ids_batch(texts, special=False)]
    if budget is not None:
        for row, (ids,) in enumerate(chunks):
            if len(ids) > budget:
                chunks[row] = _parts(pairs[row].source, preprocessing, max(budget, 1))
    return chunks


def _parts(text: str, preprocessing: Preprocessing, budget: int) -> list[list[int]]:
    """As many sentences per part as fit; a sentence that does not fit is split into equal parts."""
    parts: list[list[int]] = []
    for ids in preprocessing.tokenizer.ids_batch(
        [preprocessing.prefix + one for one in split_sentences(text)], special=False
    ):
        if parts and not preprocessing.prefix and len(parts[-1]) + len(ids) <= budget:
            parts[-1] += ids
        else:
            count = -(-len(ids) // budget)
            parts += [part.tolist() for part in np.array_split(np.array(ids, np.int64), max(count, 1))]
    return parts
