"""A text in another language, or anything else that a text is to become: learned from pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
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
from regard.model.network import Network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.transformer import Output
from regard.tasks.greedy import DecodedSequence, greedy_decode
from regard.tasks.recipe import Recipe, translation_recipe
from regard.tasks.task import Answer, Loss, Task, reject_label_settings
from regard.text.tokenizer import Tokenizer

LONGER = 2  # how many times as long as its source a translation may be,
MORE = 10  # and so many tokens more


@dataclass(frozen=True, eq=False)
class TranslationOutput(Output):
    """What was written, beside the states and scores for the words that should have been."""

    written: tuple[DecodedSequence, ...] = ()


@dataclass(frozen=True, repr=False)
class TranslationAnswer(Answer):
    """The translation and its log-probability. A long text is translated in windows, a few sentences each."""

    translation: str = ""
    score: float = 0.0

    def display(self) -> str:
        return f"{self.translation or '(nothing)'}  {self.score:.3f}"


@dataclass(frozen=True)
class Translate(Task):
    """`smoothing` moves so much of each target word to all words."""

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
                    "this row has a translation of nothing", column="source", fix="Leave it out of both files."
                )
        return cls(label_smoothing=label_smoothing)

    @classmethod
    def recipe(cls, config: Config | None, rows: int) -> Recipe:
        return Recipe() if config is None else translation_recipe(config, rows)

    def settings(self) -> dict[str, Any]:
        return {"label_smoothing": self.label_smoothing}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls(label_smoothing=float(settings.get("label_smoothing", 0.0)))

    @property
    def heads(self) -> dict[str, int]:
        return {"language": 0}

    @property
    def signatures(self) -> dict[str, str]:
        return signatures()

    def bind(self, preprocessing: Preprocessing) -> Self:
        return replace(self, tokenizer=preprocessing.tokenizer.output_tokenizer)

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labelled: bool) -> Examples:
        pairs = [record for record in records if isinstance(record, TranslateRecord)]
        start, longest = start_token(preprocessing), preprocessing.max_tokens
        words = preprocessing.tokenizer.output_tokenizer
        (before, after), (ahead, end) = special_frame(preprocessing.tokenizer), special_frame(words)
        room = None if longest is None else longest - len(before) - len(after)
        texts = [_target(pair) for pair in pairs] if labelled else []
        targets = [[*ahead, *ids, *end] for ids in words.ids_batch(texts, special=False)]
        builder, aim, long = ExamplesBuilder(), ExamplesBuilder(), 0
        for row, cuts in enumerate(source_chunks(pairs, preprocessing, room)):
            aims = targets[row] if labelled else [IGNORE]
            if labelled and (len(cuts) > 1 or (longest is not None and len(aims) > longest)):
                aims, long = [IGNORE], long + 1
            for cut in cuts:
                most = LONGER * len(cut) + MORE
                most = most if longest is None else min(most, longest - 1)
                builder.add(row, [*before, *cut, *after], by_sequence={"start": start, "end": end[-1], "most": most})
                aim.add(row, [start, *aims[:-1]], by_token={"word": np.array(aims, np.int64)})
        if long:
            warnings.warn(
                f"{long} of {len(pairs)} pairs are longer than the {longest} tokens a sequence may have: too long to "
                "be learned from whole, they have no part in the loss. Split them into sentences to use them.",
                UserWarning,
                stacklevel=2,
            )
        return builder.build(target=aim.build())

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        assert output.logits is not None
        word_N = inputs["word"]
        keep_N = word_N != IGNORE
        losses_N = F.cross_entropy(
            output.logits.float(), word_N, reduction="none", ignore_index=IGNORE, label_smoothing=self.label_smoothing
        )
        return Loss(torch.where(keep_N, losses_N, 0.0).sum(), keep_N.sum().float())

    def run(self, network: Network, inputs: Inputs) -> Output:
        """Scores of the words that should be said, and what the network says by itself."""
        assert not isinstance(network, BidirectionalNetwork)
        start, end = (int(inputs[name][0]) for name in ("start", "end"))  # the same in every row
        written = greedy_decode(network, inputs.tokens, start=start, end=end, most=inputs["most"].clamp(min=1).tolist())
        return self.with_written(network, inputs, written)

    def with_written(self, network: Network, inputs: Inputs, written: Iterable[DecodedSequence]) -> TranslationOutput:
        """What was written, however that was done, beside the scores of the words that should be said."""
        output = super().run(network, inputs)
        return TranslationOutput(output.hidden, output.logits, memory=output.memory, written=tuple(written))

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert isinstance(output, TranslationOutput)
        return list(output.written)[: inputs.rows]

    def answer(self, record: Record, said: Sequence[Any]) -> Answer:
        assert self.tokenizer is not None
        parts = [self.tokenizer.decode_generated(one.ids).strip() for one in said]
        return TranslationAnswer(len(said), translation=" ".join(parts), score=sum(one.score for one in said))

    def meter(self) -> Meter:
        return TranslationMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, TranslationAnswer)
        meter.add(answer.translation, _target(record))


def _target(record: Record) -> str:
    """The translation, which is there where it is to be learned from or scored against."""
    assert isinstance(record, TranslateRecord)
    if not record.target.strip():
        raise record.place.error(
            "this row has no translation", column="target", fix="Translate it, or leave it out of both files."
        )
    return record.target


def special_frame(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before and after every text; an end token in any case, or nothing would tell when to stop."""
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
    """The token a target begins with: as the model's folder says, else that for nothing."""
    words = preprocessing.tokenizer.output_tokenizer
    for choice in (preprocessing.start, words.pad, words.cls, words.bos, words.eos):
        if choice is not None:
            return choice
    return special_frame(words)[1][-1]


def source_chunks(
    pairs: Sequence[TranslateRecord], preprocessing: Preprocessing, room: int | None
) -> list[list[list[int]]]:
    """The ids of each source, whole where it fits, else in parts of whole sentences."""
    texts = [preprocessing.prefix + pair.source for pair in pairs]
    found = [[ids] for ids in preprocessing.tokenizer.ids_batch(texts, special=False)]
    if room is not None:
        for row, (ids,) in enumerate(found):
            if len(ids) > room:
                found[row] = _parts(pairs[row].source, preprocessing, max(room, 1))
    return found


def _parts(text: str, preprocessing: Preprocessing, room: int) -> list[list[int]]:
    """As many sentences in each part as fit; one that does not fit is cut into equal parts."""
    parts: list[list[int]] = []
    for ids in preprocessing.tokenizer.ids_batch(
        [preprocessing.prefix + one for one in split_sentences(text)], special=False
    ):
        if parts and not preprocessing.prefix and len(parts[-1]) + len(ids) <= room:
            parts[-1] += ids
        else:
            count = -(-len(ids) // room)
            parts += [part.tolist() for part in np.array_split(np.array(ids, np.int64), max(count, 1))]
    return parts
