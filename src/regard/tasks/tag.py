"""Token classification: a tag for each word (entities, parts of speech).

The first token of a word has its tag as target; its other tokens have none. Tokens are aligned with words by their
offsets in the text, so any tokenizer works with any split into words. A long text is split into windows, and a word is
predicted in the one window that owns its first token.

Where documents are known, each sentence is given to the network with tokens of the sentences around it (FLERT, Schweter
and Akbik 2020, https://arxiv.org/abs/2011.06993). These have no target and no answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batching.examples import Examples, Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.records import Record, TagRecord
from regard.data.records.neighbors import MAX_CONTEXT_WORDS
from regard.data.tags import entities
from regard.errors import InputError, did_you_mean, setting
from regard.metrics.calibration import check_temperature, fit_temperature
from regard.metrics.meter import EntityMeter, Meter, TokenMeter
from regard.model.transformer import Output
from regard.tasks.joined_sentences import JoinedSentences, follows_previous
from regard.tasks.tag_decoding import Probabilities, TagConstraints
from regard.tasks.tag_sequences import SentenceTokens, flat_word_columns, sentence_tokens, tagged_examples
from regard.tasks.task import Answer, LabelChecks, Loss, RowOutputs, Task, class_names, constant_on, internal
from regard.text.flat_tokens import Ints, bounds_of

CONTEXT_TOKENS = 64  # of the sentences around a sentence, where documents are known
MAX_CONTEXT_TOKENS = 2 * MAX_CONTEXT_WORDS
OUTSIDE = "O"
MIN_ROWS = 30  # validation rows that a temperature is tuned on
MAX_TUNED = 20_000
IOB = re.compile(r"O|[BI]-.+", re.DOTALL)


class TaggedSpan(NamedTuple):
    """A span of the text with its label: code points, end exclusive."""

    start: int
    end: int
    label: str
    text: str
    score: float


@dataclass(frozen=True, repr=False)
class TagAnswer(Answer):
    """`tags` has one tag per word as the network predicts them; the subclasses have what follows from them.

    `chances` are the probabilities of the tags.
    """

    tags: tuple[str, ...] = internal(())
    chances: tuple[float, ...] = internal(())

    @property
    def confidence(self) -> float:
        """The lowest probability of a word's tag; 1 for a text without words."""
        return min(self.chances, default=1.0)


@dataclass(frozen=True, repr=False)
class EntitiesAnswer(TagAnswer):
    """Entities of whole words, each with the mean probability of its words."""

    entities: tuple[TaggedSpan, ...] = ()  # each with start, end, label, text and score

    def display(self) -> str:
        return ", ".join(f"{one.text} ({one.label} {one.score:.2f})" for one in self.entities) or "(none)"


@dataclass(frozen=True, repr=False)
class WordsAnswer(TagAnswer):
    """Every word with its tag, for tags that are no entities."""

    words: tuple[TaggedSpan, ...] = ()  # each with start, end, label, text and score

    def display(self) -> str:
        return " ".join(f"{one.text}/{one.label}" for one in self.words)


class WindowTags(NamedTuple):
    """The predictions of a window: words from `first` to `end` (exclusive) with their tag and its probability.

    probabilities: of every tag, from which the tags of a text in several windows are decoded again.
    """

    first: Ints
    end: Ints
    tag: Ints
    chance: npt.NDArray[np.float32]
    probabilities: Probabilities

    def part(self, words: slice) -> WindowTags:
        """The same for some of the words."""
        return WindowTags(
            self.first[words], self.end[words], self.tag[words], self.chance[words], self.probabilities[words]
        )

    def by_sentence(self, starts: Ints) -> Iterator[tuple[int, WindowTags]]:
        """The numbers of the sentences in this window with their part of it; see `JoinedExamples`."""
        sentences, firsts = np.unique(np.searchsorted(starts, self.first, side="right") - 1, return_index=True)
        ends = np.append(firsts[1:], len(self.first))
        for sentence, first, end in zip(sentences.tolist(), firsts.tolist(), ends.tolist(), strict=True):
            part = self.part(slice(first, end))
            yield sentence, part._replace(first=part.first - starts[sentence], end=part.end - starts[sentence])


@dataclass(frozen=True)
class Tag(Task):
    """`weights` are tag weights of the loss; `label_smoothing` is the probability mass spread over all tags.

    context: tokens of the sentences around each sentence, half of them on each side; 0 for none.
    constrained: whether answers are sequences that are possible in IOB2. Training is not affected.
    temperature: probabilities are those of the logits divided by it; tuned on the validation rows. Tags stay the same.
    """

    name: ClassVar[str] = "tag"
    title: ClassVar[str] = "token classifier"
    record: ClassVar[type[Any]] = TagRecord
    pipeline_tag: ClassVar[str] = "token-classification"
    model_heads: ClassVar[tuple[str, ...]] = ("token",)
    uses_context: ClassVar[bool] = True
    masks_words: ClassVar[bool] = True

    names: tuple[str, ...] = ()
    weights: tuple[float, ...] | None = None
    label_smoothing: float = 0.0
    context: int = 0
    constrained: bool = True
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        *,
        class_balance: str = "none",
        label_smoothing: float = 0.0,
        context: int | None = None,
        **_: Any,
    ) -> Self:
        counts: Counter[str] = Counter()
        has_documents = False
        for record in records:
            assert isinstance(record, TagRecord)
            if record.tags is None:
                raise record.place.error("this row has no tags", fix="Tag it, or leave it out of the training.")
            counts.update(record.tags)
            has_documents |= record.document is not None
        names = _names(counts)
        if len(names) < 2:
            only = f'"{names[0]}"' if names else "none"
            raise InputError(f"the training data has one tag only ({only}); there is nothing to learn.")
        weights = None
        if class_balance == "weights":
            total = sum(counts.values())
            weights = tuple(total / (len(counts) * counts[name]) if name in counts else 1.0 for name in names)
        tokens = _context_tokens(context, has_documents=has_documents)
        return cls(names=names, weights=weights, label_smoothing=label_smoothing, context=tokens)

    def settings(self) -> dict[str, Any]:
        return {
            "labels": list(self.names),
            "weights": self.weights,
            "label_smoothing": self.label_smoothing,
            "context": self.context,
            "constrained": self.constrained,
            "temperature": self.temperature,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        weights = settings.get("weights")
        return cls(
            names=tuple(settings.get("labels", ())),
            weights=None if weights is None else tuple(weights),
            label_smoothing=float(settings.get("label_smoothing", 0.0)),
            context=int(settings.get("context", 0)),
            constrained=bool(settings.get("constrained", True)),
            temperature=float(settings.get("temperature", 1.0)),
        )

    @classmethod
    def from_head(cls, head: nn.Module, *, labels: Sequence[str] | None, problem_type: str | None) -> Self:
        # Models from elsewhere may be trained on IOB1, where an entity starts with I-.
        return cls(names=class_names(head, labels), constrained=False)

    @property
    def heads(self) -> dict[str, int]:
        return {"token": len(self.names)}

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names

    @cached_property
    def iob(self) -> bool:
        """Whether the tags are those of entities."""
        return all(IOB.fullmatch(name) for name in self.names)

    @cached_property
    def _constraints(self) -> TagConstraints | None:
        return TagConstraints.of(self.names) if self.iob and self.constrained else None

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.context:
            return ()
        return (f"context: up to {self.context} tokens of the sentences around each, from the same document",)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        tokens, columns = self._tokens(_tagged(records), preprocessing, labeled=labeled, size=self.context // 2)
        return tagged_examples(tokens, columns, preprocessing, size=self.context // 2)

    @property
    def joins_records(self) -> bool:
        """Sentences are context of each other where documents are known."""
        return self.context > 0

    def joined_examples(self, records: Sequence[Record], preprocessing: Preprocessing) -> Examples:
        """Consecutive sentences in common sequences."""
        words = np.array([len(record.spans) for record in _tagged(records)], np.int64)
        return self.joined_source(records, preprocessing).scored_examples(words)

    def joined_source(
        self, records: Sequence[Record], preprocessing: Preprocessing, *, seed: int = 0
    ) -> JoinedSentences:
        tagged = _tagged(records)
        tokens, columns = self._tokens(tagged, preprocessing, labeled=True, size=0)
        return JoinedSentences(tokens, columns, follows_previous(tagged), preprocessing, seed)

    def _tokens(
        self, records: Sequence[TagRecord], preprocessing: Preprocessing, *, labeled: bool, size: int
    ) -> tuple[SentenceTokens, dict[str, Ints]]:
        """The tokens of the records and around them, and the columns with a value for each of their own tokens."""
        tokens = sentence_tokens(records, preprocessing.tokenizer, size=size)
        columns = flat_word_columns(records, tokens.own)
        if labeled:
            columns["label"] = self._targets(records, columns["word"], tokens.own.lengths)
        return tokens, columns

    def _targets(self, records: Sequence[TagRecord], words: Ints, lengths: Ints) -> Ints:
        """The tag of each first token of a word, as a number; the tokens of the records have these lengths."""
        numbers = list(map(self._number.get, chain.from_iterable(record.tags or () for record in records)))
        if None in numbers or any(record.tags is None for record in records):
            for record in records:
                self.numbers(record)  # raises an error
        firsts = bounds_of([len(record.tags or ()) for record in records])[:-1]
        tags = np.array([*numbers, IGNORE], np.int64)
        return tags[np.where(words < 0, len(numbers), np.repeat(firsts, lengths) + words)]

    def numbers(self, record: TagRecord) -> list[int]:
        """The tags of a record as numbers; an error for a tag that the training data does not have."""
        if record.tags is None:
            raise record.place.error("this row has no tags", column="tags", expected="one a word")
        for word, tag in enumerate(record.tags):
            if tag not in self._number:
                raise record.place.error(
                    f'the tag "{tag}" of word {word} "{record.tokens[word]}" is not a label of the training data',
                    column="tags",
                    fix=did_you_mean(tag, self.names).strip(),
                )
        return [self._number[tag] for tag in record.tags]

    def prepare(self, inputs: Inputs) -> Inputs:
        """Only states of first tokens are needed. On a GPU their number would have to be waited for."""
        if inputs.fixed_shape or inputs.tokens.ids.device.type != "cpu":
            return inputs
        return inputs.selected(inputs["word"] >= 0)

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """Cross-entropy with label smoothing over the tags, for the first token of each word (as in BERT)."""
        assert output.logits is not None
        logits_NC, label_N = output.logits.float(), inputs["label"]
        keep_N, picked_N = label_N != IGNORE, label_N.clamp(min=0)
        class_weights = None if self.weights is None else constant_on(logits_NC, self.weights)
        losses_N = F.cross_entropy(
            logits_NC, picked_N, reduction="none", weight=class_weights, label_smoothing=self.label_smoothing
        )
        weight_N = torch.ones_like(losses_N) if class_weights is None else class_weights[picked_N]
        return Loss(torch.where(keep_N, losses_N, 0.0).sum(), torch.where(keep_N, weight_N, 0.0).sum())

    @property
    def predicts_classes(self) -> bool:
        return True

    def log_probabilities(self, output: Output, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Of the first token of each word."""
        assert output.logits is not None
        logits_NC, label_N = output.logits.float(), inputs["label"]
        weight_N = torch.ones_like(logits_NC[:, 0])
        if self.weights is not None:
            weight_N = constant_on(logits_NC, self.weights)[label_N.clamp(min=0)]
        return logits_NC.log_softmax(-1), torch.where(label_N != IGNORE, weight_N, 0.0)

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        first_tokens = (inputs["word"] >= 0).nonzero().squeeze(1)
        probabilities_MC = output.logits[first_tokens].float().softmax(1)
        values_M = (inputs["word"][first_tokens], inputs["upto"][first_tokens], probabilities_MC)
        first, end, probabilities = (values.cpu().numpy() for values in values_M)
        bounds = inputs.tokens.bounds[: inputs.rows + 1].cpu().numpy()
        cuts = np.searchsorted((first_tokens if inputs.at is None else inputs.at).cpu().numpy(), bounds)
        columns = self._decoded(first, end, probabilities, cuts)
        return [columns.part(slice(start, end)) for start, end in pairwise(cuts.tolist())]

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        assert isinstance(record, TagRecord)
        tags, chances = [OUTSIDE] * len(record.spans), [0.0] * len(record.spans)
        windows: Sequence[WindowTags] = outputs
        if len(windows) > 1:
            first, end, _, _, probabilities = map(np.concatenate, zip(*windows, strict=True))
            windows = [self._decoded(first, end, probabilities, np.zeros(1, np.int64))]
        for window in map(self._calibrated, windows):
            for first, end, tag, chance in zip(*(values.tolist() for values in window[:4]), strict=True):
                name = self.names[tag]
                carried = f"I-{name[2:]}" if self.iob and name != OUTSIDE else name
                tags[first:end] = [name, *[carried] * (end - first - 1)]
                chances[first:end] = [chance] * (end - first)
        if self.iob:
            spans = entities(_well_formed(tags))
        else:
            spans = [(word, word + 1, tag) for word, tag in enumerate(tags)]
        named = tuple(_named(record, first, end, label, chances) for first, end, label in spans)
        if self.iob:
            return EntitiesAnswer(len(outputs), tags=tuple(tags), chances=tuple(chances), entities=named)
        return WordsAnswer(len(outputs), tags=tuple(tags), chances=tuple(chances), words=named)

    def _calibrated(self, window: WindowTags) -> WindowTags:
        """With the probabilities of the temperature; the most likely sequence of tags is the same with any."""
        if self.temperature == 1:
            return window
        likeliest_M1 = window.probabilities.max(1, keepdims=True)  # whose power is 1, with any temperature
        parts_MC = (window.probabilities.astype(np.float64) / likeliest_M1) ** (1 / self.temperature)
        parts_MC /= parts_MC.sum(1, keepdims=True)
        probabilities = parts_MC.astype(np.float32)
        chance = probabilities[np.arange(len(probabilities)), window.tag]
        return window._replace(chance=chance, probabilities=probabilities)

    def _decoded(self, first: Ints, end: Ints, probabilities: Probabilities, cuts: Ints) -> WindowTags:
        """The most likely tags of words; `cuts` are where a text starts."""
        if self._constraints is None:
            tags = probabilities.argmax(1)
        else:
            starts = np.ones(len(first), np.bool_)
            starts[1:] = first[1:] != end[:-1]  # after a word without a token, which is tagged O
            starts[cuts[cuts < len(first)]] = True
            tags = self._constraints.decode(probabilities, starts)
        return WindowTags(first, end, tags, np.take_along_axis(probabilities, tags[:, None], 1)[:, 0], probabilities)

    def meter(self) -> Meter:
        return EntityMeter() if self.iob else TokenMeter()

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, TagAnswer)
        assert isinstance(record, TagRecord)
        self.numbers(record)
        meter.add(answer.tags, record.tags)

    def row_error(self, answer: Answer, record: Record) -> float:
        """The number of words with a wrong tag."""
        assert isinstance(answer, TagAnswer)
        assert isinstance(record, TagRecord)
        return float(sum(ours != theirs for ours, theirs in zip(answer.tags, record.tags or (), strict=True)))

    def calibration_pairs(self, answer: Answer, record: Record) -> Iterable[tuple[float, bool]]:
        """Of the tag of each word."""
        assert isinstance(answer, TagAnswer)
        assert isinstance(record, TagRecord)
        right = (ours == theirs for ours, theirs in zip(answer.tags, record.tags or (), strict=True))
        return zip(answer.chances, right, strict=True)

    @property
    def logit_temperature(self) -> float:
        return self.temperature

    def label_checks(self, record: Record, outputs: Sequence[Any]) -> LabelChecks | None:
        """The tag of each word that has a token."""
        assert isinstance(record, TagRecord)
        windows = [self._calibrated(window) for window in outputs]
        first = np.concatenate([window.first for window in windows])
        places = tuple(record.text[slice(*record.spans[word])] for word in first.tolist())
        chances = np.concatenate([window.probabilities for window in windows])
        return LabelChecks(self.names, chances, np.array(self.numbers(record), np.int64)[first], places)

    def tuned(self, meter: Meter, rows: Sequence[RowOutputs] = ()) -> Self:
        """With the temperature that fits the words of these rows best."""
        checks = [replace(self, temperature=1.0).label_checks(row.record, row.outputs) for row in rows[:MAX_TUNED]]
        known = [check for check in checks if check is not None]
        if len(rows) < MIN_ROWS or not known:
            return self
        logits_NC = _logits(np.concatenate([check.chances for check in known]))
        label_N = np.concatenate([check.labels for check in known])
        if not len(label_N) or not np.isfinite(logits_NC).all():
            return self
        return replace(self, temperature=round(fit_temperature(logits_NC, label_N), 6))

    def show_target(self, record: Record) -> str:
        assert isinstance(record, TagRecord)
        return self._shown(record, record.tags or ())

    def _shown(self, record: TagRecord, tags: Sequence[str]) -> str:
        """Entities, or words, with their labels."""
        words = [record.text[start:end] for start, end in record.spans]
        if not self.iob:
            return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))
        spans = entities(_well_formed(list(tags)))
        named = [f"{' '.join(words[first:end])} ({label})" for first, end, label in spans]
        return ", ".join(named) or "(none)"


def _logits(probabilities: Probabilities) -> npt.NDArray[np.float64]:
    """Logits of these probabilities: their logarithms."""
    return np.log(np.maximum(probabilities.astype(np.float64), 1e-38))


def _tagged(records: Sequence[Record]) -> list[TagRecord]:
    return [record for record in records if isinstance(record, TagRecord)]


def _context_tokens(context: int | None, *, has_documents: bool) -> int:
    """The number of context tokens: as given, else the default where documents are known."""
    if context is None:
        return CONTEXT_TOKENS if has_documents else 0
    if context > MAX_CONTEXT_TOKENS:
        raise InputError(f"{setting('context')} is {context}, expected at most {MAX_CONTEXT_TOKENS} tokens.")
    if context and not has_documents:
        raise InputError(
            f"{setting('context', context)} was given, but the documents of the sentences are not known. Mark where "
            "documents start (-DOCSTART- lines in CoNLL files, a column document_id in tables), or leave it out."
        )
    return context


def _names(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The tags in order; for entities always both `B-` and `I-`, since other texts may have the missing one."""
    if not counts or not all(IOB.fullmatch(name) for name in counts):
        return tuple(sorted(counts))
    kinds = sorted({name[2:] for name in counts if name != OUTSIDE})
    return (OUTSIDE, *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))


def _well_formed(tags: Sequence[str]) -> list[str]:
    """An `I-` that continues no entity opens one, as in conlleval."""
    fixed = []
    before = OUTSIDE
    for tag in tags:
        carries = tag[0] == "I" and before != OUTSIDE and before[2:] == tag[2:]
        fixed.append(tag if tag == OUTSIDE or carries else f"B-{tag[2:]}")
        before = tag
    return fixed


def _named(record: TagRecord, first: int, end: int, label: str, chances: Sequence[float]) -> TaggedSpan:
    start, stop = record.spans[first][0], record.spans[end - 1][1]
    return TaggedSpan(start, stop, label, record.text[start:stop], sum(chances[first:end]) / (end - first))
