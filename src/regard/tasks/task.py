"""The interface of a task: how records become batches, and its heads, loss, answers and scores.

No other part of the library knows a task by its name. A task is a frozen value: what it takes from the training data
(its labels, a threshold) is in its fields, and `settings()` is what a model folder stores of it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import Config
from regard.data.batching.examples import Examples, Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import Record
from regard.display import html_summary
from regard.errors import FolderError, InputError, setting
from regard.metrics.meter import Meter
from regard.model.network import Network
from regard.model.transformer import Output
from regard.tasks.joined_sentences import JoinedSentences
from regard.tasks.recipe import Recipe
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Loss:
    """A sum of losses and its count: the training loop divides once, however a step was split."""

    sum: Tensor
    count: Tensor


@dataclass(frozen=True, repr=False)
class Answer:
    """What every answer has besides its own fields. `truncated` is always false: long texts are split into windows.

    The attributes of an answer are the keys of its JSON object. What only the scoring needs is an `internal` field.
    """

    windows: int = 1  # number of windows the text was split into
    truncated: bool = False  # always false
    abstained: bool | None = field(default=None, kw_only=True)  # whether `confidence` is below --abstain, if it is set

    @property
    def confidence(self) -> float | None:
        """The probability that the answer is right; None for tasks whose answers have none."""
        return None

    def json(self) -> dict[str, Any]:
        """The answer as a plain dict: its own fields, then `truncated` and `windows`."""
        values = asdict(self)
        return {name: plain(values[name]) for name in public_fields(self)}

    def display(self) -> str:
        """The answer in a line, as the command line prints it."""
        return json.dumps(self.json(), ensure_ascii=False)

    def _repr_html_(self) -> str:
        return html_summary(type(self).__name__, self.json())

    def __repr__(self) -> str:
        shared = {"truncated": False, "windows": 1}
        values = {name: getattr(self, name) for name in public_fields(self)}
        shown = [f"{name}={_shown(value)}" for name, value in values.items() if shared.get(name) != value]
        return f"{type(self).__name__}({', '.join(shown)})"


def internal(default: Any) -> Any:
    """A field of an answer that the scoring reads and that is no part of its JSON object."""
    return field(default=default, metadata={"internal": True})


def public_fields(answer: Answer) -> list[str]:
    """The names of an answer's fields as its JSON object has them, in order."""
    shared = ["abstained", "truncated", "windows"]
    own = [one.name for one in fields(answer) if one.name not in shared and not one.metadata.get("internal")]
    return [*own, *(shared if answer.abstained is not None else shared[1:])]


def plain(value: Any) -> Any:
    """A value as JSON reads it back: tuples are lists, those with names are objects."""
    if isinstance(value, tuple | list):
        named = getattr(value, "_asdict", None)
        return [plain(one) for one in value] if named is None else named()
    return value


def _shown(value: Any) -> str:
    """A value as Python writes it, with four digits of a number."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_shown(one)}' for key, one in value.items())}}}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        parts = [f"{name}={_shown(one)}" for name, one in value._asdict().items()]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_shown(one) for one in value)}]"
    return repr(value)


def check_abstain(value: float | None) -> None:
    """Raise an error unless a confidence to abstain below is a probability."""
    if value is not None and not 0 <= value <= 1:
        raise InputError(f"{setting('abstain', value)} was given, expected a confidence from 0 to 1.")


def with_abstention(answer: Answer, below: float) -> Answer:
    """The answer, marked as abstained if its confidence is below a limit."""
    if answer.confidence is None:
        raise InputError(
            f"{setting('abstain', below)} needs answers with a confidence, and those of this model have none "
            f"({type(answer).__name__}). Leave it out."
        )
    return replace(answer, abstained=answer.confidence < below)


class RowOutputs(NamedTuple):
    """A record and what the network computed for its windows, from which its answer is made."""

    record: Record
    outputs: Sequence[Any]


class Task(ABC):
    """The interface. To add a task: one class in one file, registered in `regard.tasks`."""

    name: ClassVar[str]  # as in --task and run.json
    title: ClassVar[str]  # of a trained model, such as "text classifier"
    record: ClassVar[type[Any]]  # the type of record it is trained on
    input_roles: ClassVar[tuple[str, ...]] = ("text",)  # the texts of an input, by column role
    pipeline_tag: ClassVar[str] = "feature-extraction"  # the task's name on the Hugging Face hub
    in_transformers: ClassVar[bool] = True  # whether transformers has a model class for its heads
    example_call: ClassVar[str] = 'predict(["a text"])'  # a method call of a loaded model, for the model card
    command: ClassVar[str] = "predict"  # the command that uses a trained model
    command_example: ClassVar[str] = '"your text"'  # its arguments after the model
    model_heads: ClassVar[tuple[str, ...]] = ()  # heads by which a model from elsewhere is recognized
    language_model: ClassVar[bool] = False  # whether it predicts tokens of plain text, not answers about a text
    pair_task: ClassVar[str | None] = None  # the task with the same head for pairs of texts
    probe: ClassVar[str] = "never"  # whether a new head starts from a linear probe: never, on request, or by default
    keeps_pooling: ClassVar[bool] = False  # whether a model keeps the pooling files it started with
    separate_vocabularies: ClassVar[bool] = False  # whether inputs and targets may have vocabularies of their own
    fixed_shapes: ClassVar[bool] = True  # whether batches can be padded to a fixed shape, for a compiled step
    uses_context: ClassVar[bool] = False  # whether it reads the sentences around a sentence (setting `context`)
    masks_words: ClassVar[bool] = False  # whether it can be trained with masked words (setting `explainable`)
    network_kind: ClassVar[str | None] = None  # the kind of network it needs; None for any
    chunk_size: ClassVar[int] = 2048  # records in memory at once during inference
    max_dev_rows: ClassVar[int | None] = None  # validation rows scored during training; all if None

    @classmethod
    @abstractmethod
    def from_records(cls, records: Iterable[Record], **settings: Any) -> Self:
        """The task for these training records, with their labels. One pass over the records."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What a model folder stores of the task, as JSON; `from_settings` reads it."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The task with these settings."""

    @classmethod
    def recipe(cls, config: Config | None, rows: int, *, gpu: bool = False) -> Recipe:
        """Default settings for this many rows: from scratch with this `config`, or fine-tuned if it is None.

        gpu: whether a GPU trains, for which twice the time of a step matters less.
        """
        return Recipe()

    @classmethod
    def from_head(cls, head: nn.Module, *, labels: Sequence[str] | None, problem_type: str | None) -> Self:
        """The task of a model from elsewhere, from its head and what its config.json says of labels."""
        return cls.from_settings({})

    @classmethod
    def plain_text_task(cls, tokenizer: Tokenizer, *, vocabulary: int, has_settings: bool) -> Task | None:
        """The task that scores such a language model on plain text; None for the one in the model folder.

        `has_settings` says whether the folder has settings of the task.
        """
        return None

    @property
    def score_note(self) -> str:
        """How scores were computed, if readers must know."""
        return ""

    @property
    def label_style(self) -> str | None:
        """How labels in a file are to be read (`regard.data.labels`); None to recognize it."""
        return None

    @property
    @abstractmethod
    def heads(self) -> dict[str, int]:
        """The heads its network needs, with their numbers of classes."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, for config.json."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the task has chosen from the training data, in words, for the start of a training."""
        return ()

    @property
    def can_split(self) -> bool:
        """Whether a step may be split into micro-batches: its loss is the sum of theirs."""
        return True

    @property
    def problem_type(self) -> str | None:
        """`problem_type` in config.json, where there is one."""
        return None

    @property
    def signatures(self) -> dict[str, str]:
        """How scores were computed, by score name (the signature of BLEU)."""
        return {}

    def bind(self, preprocessing: Preprocessing) -> Self:
        """The task with the tokenizer that decodes its answers, where it needs one."""
        return self

    @abstractmethod
    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        """Sequences of these records, long texts split into windows; with targets if `labeled`."""

    @property
    def joins_records(self) -> bool:
        """Whether several records may share a sequence in training, which then takes less time."""
        return False

    def joined_examples(self, records: Sequence[Record], preprocessing: Preprocessing) -> Examples:
        """Sequences of several records with targets, for scores during training."""
        raise NotImplementedError(f"{self.name} joins no records")

    def joined_source(self, records: Sequence[Record], preprocessing: Preprocessing, *, seed: int) -> JoinedSentences:
        """Sequences of several records with targets, to train on; others in each epoch."""
        raise NotImplementedError(f"{self.name} joins no records")

    def prepare(self, inputs: Inputs) -> Inputs:
        """Random changes of a batch, on its device, such as masking; none by default."""
        return inputs

    @abstractmethod
    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """The loss of a batch; what has no target (`IGNORE`, NaN) does not count."""

    @property
    def predicts_classes(self) -> bool:
        """Whether it has `log_probabilities`, which R-Drop compares."""
        return False

    def log_probabilities(self, output: Output, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """(N, C) log-probabilities of the classes at each position, and (N,) its weight in the loss.

        The weights add up to the count of the loss: they are 0 where there is no target.
        """
        raise NotImplementedError(f"{self.name} predicts no classes")

    def run(self, network: Network, inputs: Inputs) -> Output:
        """The output of the network for inference; a translation task decodes here."""
        output: Output = network(inputs.tokens, inputs.target, at=inputs.at)
        return output

    @abstractmethod
    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        """A small value on the CPU for each of the first `inputs.rows` sequences, from which answers are made."""

    @abstractmethod
    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        """The answer for a record from the outputs of its windows."""

    @abstractmethod
    def meter(self) -> Meter:
        """An empty meter, which computes the scores from answers one after the other."""

    @abstractmethod
    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        """Add an answer and its record to the meter."""

    def is_correct(self, answer: Answer, record: Record) -> bool | None:
        """Whether the answer is right; None for tasks whose answers are more or less right."""
        return None

    def row_error(self, answer: Answer, record: Record) -> float | None:
        """How wrong an answer is, 0 if it is right; None where that is not known for one row."""
        correct = self.is_correct(answer, record)
        return None if correct is None else float(not correct)

    def show_target(self, record: Record) -> str:
        """What the answer should be, in words."""
        return record.annotation

    def show_answer(self, answer: Answer) -> str:
        """The answer in words, without its probability."""
        return answer.display().strip()

    @property
    def logit_temperature(self) -> float:
        """The number that logits are divided by before they become probabilities; fitted on the validation rows."""
        return 1.0

    @classmethod
    def has_labels(cls) -> bool:
        """Whether rows have labels that a report can check, as texts and words have, but not translations."""
        return cls.label_checks is not Task.label_checks

    def label_checks(self, record: Record, outputs: Sequence[Any]) -> LabelChecks | None:
        """The labels of a row and the probabilities of what they could be; None for tasks without labels."""
        return None

    def calibration_pairs(self, answer: Answer, record: Record) -> Iterable[tuple[float, bool]]:
        """Probabilities in the answer, each with whether it was right; none by default without a confidence."""
        correct = self.is_correct(answer, record)
        return () if answer.confidence is None or correct is None else ((answer.confidence, correct),)

    def tuned(self, meter: Meter, rows: Sequence[RowOutputs] = ()) -> Self:
        """The task with what is chosen on the validation rows after training, such as a threshold.

        meter: with the answers for all of them. rows: all of them, or a sample of many.
        """
        return self


@dataclass(frozen=True, eq=False)
class LabelChecks:
    """Labels of a row, to be compared with what a model makes of it.

    names: what a label can be. chances: (labels of the row, names) their probabilities. labels: as numbers.
    places: what each label is of, such as a word; empty where a row has one label.
    apart: whether each place is a question of its own (does the row have this label?), the same in every row.
    """

    names: tuple[str, ...]
    chances: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    places: tuple[str, ...] = ("",)
    apart: bool = False

    def show(self, index: int, number: int) -> str:
        """What a label could be instead, in words."""
        place, name = self.places[index], self.names[number]
        if self.apart:
            return f"{name} {place}"
        return f"{place}: {name}" if place else name


def constant_on(device_of: Tensor, values: Sequence[float]) -> Tensor:
    """Numbers created on the device itself: a copy from the host cannot be part of a CUDA graph."""
    return torch.cat([device_of.new_full((1,), value) for value in values])


def reject_label_settings(why: str, *, class_balance: str = "none", label_smoothing: float = 0.0) -> None:
    """Raise an error for a label setting that would have no effect. `why` ends the sentence."""
    if class_balance != "none" or label_smoothing:
        option = (
            setting("class_balance", class_balance)
            if class_balance != "none"
            else setting("label_smoothing", label_smoothing)
        )
        raise InputError(f"{option} is for labels, and {why}. Leave it out.")


def weighted_loss(losses: Tensor, weights: Tensor, keep: Tensor) -> Loss:
    """Losses times weights where `keep`, and the sum of those weights."""
    weights = torch.where(keep, weights, 0.0)
    return Loss((torch.where(keep, losses, 0.0) * weights).sum(), weights.sum())


def class_count(head: nn.Module) -> int:
    """The number of classes of a classification head."""
    output: Any = head.output
    return int(output.out_features)


def class_names(head: nn.Module, labels: Sequence[str] | None) -> tuple[str, ...]:
    """The names of a head's classes, numbered as transformers does where config.json has none."""
    count = class_count(head)
    names = tuple(labels) if labels and len(labels) == count else tuple(f"LABEL_{number}" for number in range(count))
    repeated = first_repeated(names)
    if repeated is not None:
        raise FolderError(
            f'config.json: two classes of id2label are called "{repeated}", so answers would be ambiguous. '
            "Give each class its own name."
        )
    return names


def first_repeated(names: Sequence[str]) -> str | None:
    """The first name that occurs a second time."""
    known: set[str] = set()
    for name in names:
        if name in known:
            return name
        known.add(name)
    return None
