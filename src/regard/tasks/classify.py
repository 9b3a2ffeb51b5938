"""Text classification: one label, several labels, or a number for a text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batching.assembly import SequencePart, Sequences, assemble, cut_rows
from regard.data.batching.examples import Examples, Inputs
from regard.data.batching.framing import SpecialTokens, window_too_small
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.windows import windows
from regard.data.corpus.masking import IGNORE
from regard.data.records import ClassifyRecord, Label, PairRecord, Record
from regard.errors import DataError, InputError, did_you_mean
from regard.metrics.calibration import check_temperature, fit_sigmoid_temperature, fit_temperature, sigmoid, softmax
from regard.metrics.meter import LabelMeter, Meter, MultiLabelMeter, NumberMeter
from regard.metrics.thresholds import FIXED, tune_thresholds
from regard.model.transformer import Output
from regard.tasks.task import (
    Answer,
    LabelChecks,
    Loss,
    RowOutputs,
    Task,
    class_names,
    constant_on,
    reject_label_settings,
    weighted_loss,
)

KINDS = ("single", "multi", "number")
PROBLEM_TYPES = {"single": "single_label_classification", "multi": "multi_label_classification", "number": "regression"}
LabeledRecord = ClassifyRecord | PairRecord
MIN_ROWS = 30  # validation rows that a temperature and thresholds are tuned on


@dataclass(frozen=True, repr=False)
class LabelAnswer(Answer):
    """The most likely label and the probability of each."""

    label: str = ""  # the most likely label
    score: float = 0.0  # its probability
    scores: Mapping[str, float] | None = None  # the probability of each label

    @property
    def confidence(self) -> float:
        return self.score

    def display(self) -> str:
        return f"{self.label:<16} {self.score:.3f}"


@dataclass(frozen=True, repr=False)
class LabelsAnswer(Answer):
    """Every label with a probability above its threshold, and the probability of each.

    The thresholds are tuned on the validation rows of the training; without these they are 0.5.
    """

    labels: tuple[str, ...] = ()  # labels with a probability above their thresholds
    scores: Mapping[str, float] | None = None  # the probability of each label

    @property
    def confidence(self) -> float:
        """The probability that all labels are right, if they are independent of each other."""
        return math.prod(chance if name in self.labels else 1 - chance for name, chance in (self.scores or {}).items())

    def display(self) -> str:
        scores = self.scores or {}
        names = ", ".join(f"{name} {scores[name]:.2f}" for name in self.labels)
        return f"{names or '(none)':<32}"


@dataclass(frozen=True, repr=False)
class NumberAnswer(Answer):
    """A number on the scale of the training data."""

    value: float = 0.0  # the predicted number

    def display(self) -> str:
        return f"{self.value:>9.4f}"


@dataclass(frozen=True)
class Classify(Task):
    """`weights` are class weights of the loss; `label_smoothing` is the probability mass spread over all classes.

    For several labels per text, a weight is that of texts with the label, relative to 1 for texts without it.
    `temperature` and `thresholds` are tuned on the validation rows: probabilities are those of the logits divided by
    the temperature, and one of several labels is predicted above its threshold.
    """

    name: ClassVar[str] = "classify"
    title: ClassVar[str] = "text classifier"
    record: ClassVar[type[Any]] = ClassifyRecord
    pipeline_tag: ClassVar[str] = "text-classification"
    model_heads: ClassVar[tuple[str, ...]] = ("sequence",)
    pair_task: ClassVar[str | None] = "pair"
    probe: ClassVar[str] = "default"
    masks_words: ClassVar[bool] = True

    kind: str = "single"
    names: tuple[str, ...] = ()
    weights: tuple[float, ...] | None = None
    label_smoothing: float = 0.0
    temperature: float = 1.0
    thresholds: tuple[float, ...] | None = None  # of each label; 0.5 if None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f'classification of kind "{self.kind}" is not known.{did_you_mean(self.kind, KINDS)}')
        check_temperature(self.temperature)
        if self.thresholds is not None and len(self.thresholds) != len(self.names):
            raise InputError(f"{len(self.thresholds)} thresholds for {len(self.names)} labels, expected one for each.")

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, class_balance: str = "none", label_smoothing: float = 0.0, **_: Any
    ) -> Self:
        counts: Counter[str] = Counter()
        kinds: dict[str, LabeledRecord] = {}
        rows = 0
        for record in records:
            assert isinstance(record, ClassifyRecord | PairRecord)
            if record.label is None:
                raise record.place.error("this row has no label", fix="Label it, or leave it out of the training.")
            kinds.setdefault(kind_of(record.label), record)
            counts.update(_names(record.label))
            rows += 1
        if len(kinds) > 1:
            raise _mixed(kinds)
        kind, names = next(iter(kinds), "single"), tuple(sorted(counts))
        if kind == "number":
            reject_label_settings("these are numbers", class_balance=class_balance, label_smoothing=label_smoothing)
        if kind == "multi":
            reject_label_settings("these do not exclude each other", label_smoothing=label_smoothing)
        if kind == "multi" and not names:
            raise InputError("no row of the training data has a label; there is nothing to learn.")
        if kind == "single" and len(names) < 2:
            only = f'"{names[0]}"' if names else "none"
            raise InputError(f"the training data has one label only ({only}); there is nothing to learn.")
        weights = _weights(kind, [counts[name] for name in names], rows) if class_balance == "weights" else None
        return cls(kind=kind, names=names, weights=weights, label_smoothing=label_smoothing)

    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "labels": list(self.names),
            "weights": self.weights,
            "label_smoothing": self.label_smoothing,
            "temperature": self.temperature,
            "thresholds": self.thresholds,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        weights, thresholds = settings.get("weights"), settings.get("thresholds")
        return cls(
            kind=str(settings.get("kind", "single")),
            names=tuple(settings.get("labels", ())),
            weights=None if weights is None else tuple(weights),
            label_smoothing=float(settings.get("label_smoothing", 0.0)),
            temperature=float(settings.get("temperature", 1.0)),
            thresholds=None if thresholds is None else tuple(map(float, thresholds)),
        )

    @classmethod
    def from_head(cls, head: nn.Module, *, labels: Sequence[str] | None, problem_type: str | None) -> Self:
        names = class_names(head, labels)
        kinds = {problem: kind for kind, problem in PROBLEM_TYPES.items()}
        if problem_type is None:
            kind = "number" if len(names) == 1 else "single"
        else:
            kind = kinds[problem_type]
        return cls(kind=kind, names=() if kind == "number" else names)

    @property
    def label_style(self) -> str:
        """A number that names a class is no number to be predicted."""
        if self.kind == "single" and any("|" in name for name in self.names):
            return "class"
        return self.kind

    @property
    def score_note(self) -> str:
        return f'f1 is that of the label "{self.names[-1]}".' if self.kind == "single" and len(self.names) == 2 else ""

    @property
    def heads(self) -> dict[str, int]:
        return {"sequence": 1 if self.kind == "number" else len(self.names)}

    @property
    def labels(self) -> tuple[str, ...] | None:
        return None if self.kind == "number" else self.names

    @property
    def problem_type(self) -> str:
        return PROBLEM_TYPES[self.kind]

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        sequences = self.sequences(records, preprocessing)
        return weighted_windows(sequences, self._targets(records) if labeled else None)

    def sequences(self, records: Sequence[Record], preprocessing: Preprocessing) -> Sequences:
        """The windows of each record."""
        tokenizer = preprocessing.tokenizer
        special = [SpecialTokens(ids, (0,) * len(ids)) for ids in tokenizer.surrounding_ids]
        tokens = tokenizer.flat_batch([record.text for record in records if isinstance(record, ClassifyRecord)])
        long = tokens.lengths[:0]
        size = 1
        if preprocessing.max_tokens is not None:
            around = sum(len(one.ids) for one in special)
            size = preprocessing.max_tokens - around
            if size < 1 and len(tokens.ids):
                raise window_too_small(preprocessing.max_tokens, around)
            long = np.flatnonzero(tokens.lengths > size)
        overlap = int(max(size, 1) * preprocessing.overlap)
        cuts = cut_rows(tokens.lengths, long, lambda row: windows(int(tokens.lengths[row]), size=size, overlap=overlap))
        before, after = (SequencePart.special(one, len(cuts.row)) for one in special)
        return assemble(cuts.row, (before, SequencePart.text(tokens, cuts), after), segments=preprocessing.segments)

    def _targets(self, records: Sequence[Record]) -> npt.NDArray[Any]:
        """The labels of the records as what the loss needs."""
        if self.kind == "single":
            labels = [record.label for record in records if isinstance(record, LabeledRecord)]
            numbers = [self._number.get(label) for label in labels if isinstance(label, str)]
            if None not in numbers and len(numbers) == len(records):
                return np.array(numbers, np.int64)
        return np.array([self.target(record) for record in records if isinstance(record, LabeledRecord)])

    def target(self, record: LabeledRecord) -> Any:
        """The label as what the loss needs."""
        label = record.label
        if label is None or kind_of(label) != self.kind:
            actual = "no label" if label is None else f"the label {label!r}"
            expected = {"single": "one label", "multi": "a list of labels", "number": "a number"}[self.kind]
            raise record.place.error(f"this row has {actual}", column="label", expected=expected)
        if self.kind == "number":
            assert isinstance(label, float)
            return np.float32(label)
        for name in _names(label):
            if name not in self._number:
                raise record.place.error(
                    f'the label "{name}" is not a label of the training data',
                    column="label",
                    fix=did_you_mean(name, self.names).strip(),
                )
        if self.kind == "single":
            return self._number[str(label)]
        return np.isin(np.arange(len(self.names)), [self._number[name] for name in _names(label)]).astype(np.float32)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def prepare(self, inputs: Inputs) -> Inputs:
        """No token states are needed: a network may skip what its pooled vector does not depend on."""
        return replace(inputs, at=inputs.tokens.ids.new_empty(0))

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """Cross-entropy with label smoothing, binary cross-entropy, or the squared error, by the kind of labels.

        One label: a softmax over the classes; the target has probability 1 minus `label_smoothing`, of which all
        classes get an equal part (Szegedy et al. 2016, https://arxiv.org/abs/1512.00567). Several labels: a sigmoid per
        class, each its own yes or no. A number: the squared difference. The windows of a long text share its weight.
        """
        assert output.logits is not None
        logits_BC, label, weight_B = output.logits.float(), inputs["label"], inputs["weight"]
        if self.kind == "single":
            keep_B = label != IGNORE
            class_weights = None if self.weights is None else constant_on(logits_BC, self.weights)
            picked = label.clamp(min=0)
            losses_B = F.cross_entropy(
                logits_BC, picked, reduction="none", weight=class_weights, label_smoothing=self.label_smoothing
            )
            if class_weights is None:
                return weighted_loss(losses_B, weight_B, keep_B)
            return Loss(
                weighted_loss(losses_B, weight_B, keep_B).sum,
                torch.where(keep_B, weight_B * class_weights[picked], 0.0).sum(),
            )
        if self.kind == "number":
            keep_B = ~label.isnan()
            return weighted_loss((logits_BC.squeeze(1) - label.nan_to_num()).square(), weight_B, keep_B)
        keep_BC = ~label.isnan()
        class_weights = None if self.weights is None else constant_on(logits_BC, self.weights)
        losses_BC = F.binary_cross_entropy_with_logits(
            logits_BC, label.nan_to_num(), reduction="none", pos_weight=class_weights
        )
        return weighted_loss(losses_BC, weight_B.unsqueeze(1).expand_as(losses_BC), keep_BC)

    @property
    def predicts_classes(self) -> bool:
        return self.kind != "number"

    def log_probabilities(self, output: Output, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Of the classes of each text; for several labels, of yes and no for each of them."""
        assert output.logits is not None
        logits_BC, label, weight_B = output.logits.float(), inputs["label"], inputs["weight"]
        if self.kind == "multi":
            log_BC2 = torch.stack((F.logsigmoid(logits_BC), F.logsigmoid(-logits_BC)), -1)
            weight_BC = torch.where(label.isnan(), 0.0, weight_B.unsqueeze(1).expand_as(label))
            return log_BC2.flatten(0, 1), weight_BC.flatten()
        if self.weights is not None:
            weight_B = weight_B * constant_on(logits_BC, self.weights)[label.clamp(min=0)]
        return logits_BC.log_softmax(-1), torch.where(label != IGNORE, weight_B, 0.0)

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        return list(output.logits[: inputs.rows].float().cpu().numpy())

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        logits = (outputs[0] if len(outputs) == 1 else np.mean(outputs, axis=0)).tolist()
        if self.kind == "number":
            return NumberAnswer(len(outputs), value=logits[0])
        logits = [logit / self.temperature for logit in logits]
        chances = softmax(logits) if self.kind == "single" else [sigmoid(logit) for logit in logits]
        scores = dict(sorted(zip(self.names, chances, strict=True), key=lambda pair: -pair[1]))
        if self.kind == "single":
            best = next(iter(scores))
            return LabelAnswer(len(outputs), label=best, score=scores[best], scores=scores)
        limits = dict(zip(self.names, self.thresholds or [FIXED] * len(self.names), strict=True))
        above = tuple(name for name, chance in scores.items() if chance > limits[name])
        return LabelsAnswer(len(outputs), labels=above, scores=scores)

    def meter(self) -> Meter:
        if self.kind == "number":
            return NumberMeter()
        return LabelMeter(self.names) if self.kind == "single" else MultiLabelMeter(self.names)

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(record, ClassifyRecord | PairRecord)
        self.target(record)
        if isinstance(answer, LabelAnswer):
            meter.add(answer.label, record.label)
        elif isinstance(answer, LabelsAnswer):
            meter.add(answer.labels, record.label)
        elif isinstance(answer, NumberAnswer):
            meter.add(answer.value, record.label)

    def is_correct(self, answer: Answer, record: Record) -> bool | None:
        assert isinstance(record, ClassifyRecord | PairRecord)
        if isinstance(answer, LabelAnswer):
            return answer.label == record.label
        if isinstance(answer, LabelsAnswer):
            return set(answer.labels) == set(_names(record.label or ()))
        return None

    def row_error(self, answer: Answer, record: Record) -> float | None:
        assert isinstance(record, ClassifyRecord | PairRecord)
        if isinstance(answer, NumberAnswer) and isinstance(record.label, float):
            return abs(answer.value - record.label)
        return super().row_error(answer, record)

    def show_target(self, record: Record) -> str:
        assert isinstance(record, ClassifyRecord | PairRecord)
        return _in_words(record.label)

    def show_answer(self, answer: Answer) -> str:
        if isinstance(answer, NumberAnswer):
            return _in_words(answer.value)
        assert isinstance(answer, LabelAnswer | LabelsAnswer)
        return _in_words(answer.label if isinstance(answer, LabelAnswer) else answer.labels)

    @property
    def logit_temperature(self) -> float:
        return self.temperature

    def label_checks(self, record: Record, outputs: Sequence[Any]) -> LabelChecks | None:
        """The label; of several labels, whether the row has each of them."""
        assert isinstance(record, ClassifyRecord | PairRecord)
        if self.kind == "number" or record.label is None:
            return None
        logits_C = torch.from_numpy(np.mean(outputs, axis=0)) / self.temperature
        target = np.asarray(self.target(record))
        if self.kind == "single":
            return LabelChecks(self.names, logits_C.softmax(0)[None].numpy(), target.reshape(1).astype(np.int64))
        chances = logits_C.sigmoid()
        both = torch.stack((1 - chances, chances), 1).numpy()
        return LabelChecks(("without", "with"), both, (target > 0.5).astype(np.int64), self.names, apart=True)

    def calibration_pairs(self, answer: Answer, record: Record) -> Iterable[tuple[float, bool]]:
        """Of the predicted label; for several labels, of each of them."""
        if not isinstance(answer, LabelsAnswer):
            return super().calibration_pairs(answer, record)
        assert isinstance(record, ClassifyRecord | PairRecord)
        gold = set(_names(record.label or ()))
        return ((chance, name in gold) for name, chance in (answer.scores or {}).items())

    def tuned(self, meter: Meter, rows: Sequence[RowOutputs] = ()) -> Self:
        """With the temperature, and for several labels the thresholds, that fit these rows best."""
        if self.kind == "number" or len(rows) < MIN_ROWS:
            return self
        logits_NC = np.stack([np.mean(row.outputs, axis=0, dtype=np.float64) for row in rows])
        targets = np.stack([self.target(row.record) for row in rows if isinstance(row.record, LabeledRecord)])
        if not np.isfinite(logits_NC).all():
            return self
        if self.kind == "single":
            return replace(self, temperature=round(fit_temperature(logits_NC, targets), 6))
        temperature = round(fit_sigmoid_temperature(logits_NC, targets), 6)
        chances = torch.from_numpy(logits_NC / temperature).sigmoid().numpy()
        thresholds = tuple(round(value, 6) for value in tune_thresholds(chances, targets).tolist())
        return replace(self, temperature=temperature, thresholds=thresholds)


def weighted_windows(sequences: Sequences, targets: npt.NDArray[Any] | None) -> Examples:
    """Sequences with the target of their row, if there are targets. The windows of a row share its weight."""
    owners = sequences.examples.owners
    by_sequence: dict[str, Any] = {"weight": (1 / np.bincount(owners)[owners]).astype(np.float32)}
    if targets is not None:
        by_sequence = {"label": targets[owners], **by_sequence}
    return sequences.build(by_sequence=by_sequence, by_token={})


def kind_of(label: Label) -> str:
    """The kind of classification that a label is for."""
    if isinstance(label, float):
        return "number"
    return "single" if isinstance(label, str) else "multi"


def _names(label: Label) -> tuple[str, ...]:
    """The class names in a label; none in a number."""
    if isinstance(label, float):
        return ()
    return (label,) if isinstance(label, str) else label


def _in_words(label: Label | None) -> str:
    if isinstance(label, float):
        return f"{label:.4g}"
    return ", ".join(_names(label or ())) or "(none)"


def _weights(kind: str, counts: Sequence[int], rows: int) -> tuple[float, ...]:
    """One a class: what makes all classes count alike, or the texts with a label as much as those without."""
    if kind == "multi":
        return tuple(max(rows - count, 1) / count for count in counts)
    return tuple(rows / (len(counts) * count) for count in counts)


def _mixed(kinds: Mapping[str, LabeledRecord]) -> DataError:
    (_, one), (_, other) = list(kinds.items())[:2]
    where = one.place.line or one.place.row
    return other.place.error(
        f"the label {other.label!r} is of another kind than {one.label!r} at {where}",
        column="label",
        expected="one kind: a name, a list of names, or a number",
    )
