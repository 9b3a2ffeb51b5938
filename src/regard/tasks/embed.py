"""Sentence embeddings: the mean of a text's last hidden states, similar for texts that belong together.

Pairs without labels are trained with in-batch negatives, so larger batches help. For pairs with a number, the cosine
of the two vectors is trained to be that number, scaled to 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batching.examples import Examples, ExamplesBuilder, Inputs
from regard.data.batching.framing import Frame, single_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import PairRecord, Record
from regard.errors import InputError
from regard.metrics.confidence import Score
from regard.metrics.meter import MeanMeter, Meter, NumberMeter
from regard.model.transformer import Output
from regard.tasks.task import Answer, Loss, Task, reject_label_settings


@dataclass(frozen=True, repr=False)
class SimilarityAnswer(Answer):
    """The cosine similarity of two texts; `is_nearest`: whether the second was the most similar of its batch.

    `windows` are those of the text that has more.
    """

    similarity: float = 0.0  # cosine, from -1 to 1
    is_nearest: bool | None = None  # for pairs without a number

    def display(self) -> str:
        return f"{self.similarity:>9.4f}"


class SimilarityMeter(NumberMeter):
    """Cosines against numbers; the main score is their rank correlation."""

    main = "spearman"

    def scores(self) -> dict[str, Score]:
        scores = super().scores()
        return {self.main: scores.pop(self.main), **scores}


@dataclass(frozen=True)
class Embed(Task):
    """`scale` is what the smallest and the largest label were; None for pairs without labels."""

    name: ClassVar[str] = "embed"
    title: ClassVar[str] = "sentence embedding model"
    record: ClassVar[type[Any]] = PairRecord
    input_roles: ClassVar[tuple[str, ...]] = ("first", "second")
    pipeline_tag: ClassVar[str] = "sentence-similarity"
    example_call: ClassVar[str] = 'embed(["a text"])'
    command: ClassVar[str] = "embed"
    command_example: ClassVar[str] = '"a text" "another"'
    keeps_pooling: ClassVar[bool] = True
    fixed_shapes: ClassVar[bool] = False  # a row has as many sequences as its texts have windows

    scale: tuple[float, float] | None = None
    temperature: float = 0.05
    symmetric: bool = True  # also select the first text by the second

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise InputError(f"the temperature is {self.temperature:g}, but it must be above 0.")

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        *,
        class_balance: str = "none",
        label_smoothing: float = 0.0,
        temperature: float = 0.05,
        symmetric: bool = True,
        **_: Any,
    ) -> Self:
        reject_label_settings("similar texts have none", class_balance=class_balance, label_smoothing=label_smoothing)
        low, high, bare = np.inf, -np.inf, None
        for record in records:
            assert isinstance(record, PairRecord)
            if record.label is None:
                bare = record
                continue
            if not isinstance(record.label, float):
                raise record.place.error(
                    f"the label {record.label!r} is no number",
                    column="label",
                    fix="Give how similar the texts are as a number, or leave labels out if all pairs belong together.",
                )
            low, high = min(low, record.label), max(high, record.label)
        if bare is not None and high >= low:
            raise bare.place.error("this pair has no number, but others have", column="label")
        if bare is None and not high > low:
            raise InputError("every pair has the same number, so there is nothing to learn from it. Leave labels out.")
        return cls(None if bare is not None else (float(low), float(high)), temperature, symmetric)

    def settings(self) -> dict[str, Any]:
        scale = None if self.scale is None else list(self.scale)
        return {"scale": scale, "temperature": self.temperature, "symmetric": self.symmetric}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        scale = settings.get("scale")
        return cls(
            None if scale is None else (float(scale[0]), float(scale[1])),
            float(settings.get("temperature", 0.05)),
            bool(settings.get("symmetric", True)),
        )

    @property
    def heads(self) -> dict[str, int]:
        return {}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        """A row holds the windows of both texts of a pair, so that they are always in one batch."""
        builder, frame = ExamplesBuilder(segments=preprocessing.segments), Frame.of(preprocessing.tokenizer)
        pairs = [record for record in records if isinstance(record, PairRecord)]
        texts = [text for pair in pairs for text in (pair.first, pair.second)]
        for number, ids in enumerate(preprocessing.tokenizer.ids_batch(texts, special=False)):
            row, second = divmod(number, 2)
            label = {"label": np.float32(self._target(pairs[row]))} if labeled and self.scale else {}
            for cut in single_windows(frame, ids, max_tokens=preprocessing.max_tokens, overlap=preprocessing.overlap):
                opens = cut.parts[0].window.start == 0
                last = cut.parts[0].window.end == len(ids)
                own = _own(cut.own, opens=opens, closes=last)
                shown = {"opens": np.int64(opens), **label}
                joined = bool(second) or not opens
                builder.add(row, cut.ids, cut.segments, by_sequence=shown, by_token={"own": own}, same_row=joined)
        return builder.build()

    def _target(self, record: PairRecord) -> float:
        """The number on a scale from 0 to 1."""
        if not isinstance(record.label, float):
            raise record.place.error("this pair has no number", column="label", expected="how similar the texts are")
        assert self.scale is not None
        low, high = self.scale
        return (record.label - low) / (high - low)

    def vectors(self, output: Output, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """(P, D) of the first texts and of the second, of length 1: the mean over each text's own tokens."""
        opens_B = inputs["opens"] == 1
        texts = int(opens_B.sum())
        text_B = (opens_B.cumsum(0) - 1).clamp(min=0)
        owner_N = text_B[inputs.tokens.sequence_ids]
        own_N1 = inputs["own"].nan_to_num().unsqueeze(1)
        hidden_ND = output.hidden.float() * own_N1
        sums_TD = hidden_ND.new_zeros(texts, hidden_ND.shape[1])
        if texts:
            sums_TD = sums_TD.index_add(0, owner_N, hidden_ND)
        unit_TD = F.normalize(sums_TD, dim=1)  # the mean points where the sum points
        return unit_TD[0::2], unit_TD[1::2]

    @property
    def can_split(self) -> bool:
        return self.scale is not None  # else every text of a batch is compared with every other

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """InfoNCE with in-batch negatives, or the squared error of the cosine for pairs with a number.

        1. Compute the cosine of every first text with every second text of the batch, divided by the temperature.
        2. Cross-entropy: among all second texts of the batch, each first text must select its own; the others are its
           negatives (van den Oord et al. 2018, https://arxiv.org/abs/1807.03748). This is
           MultipleNegativesRankingLoss of sentence-transformers (Henderson et al. 2017).
        3. If `symmetric`, the same from second to first text, and the mean of both.
        """
        first_PD, second_PD = self.vectors(output, inputs)
        count = torch.tensor(float(len(first_PD)), device=first_PD.device)
        if not len(first_PD):
            return Loss(output.hidden.sum() * 0.0, count)
        if self.scale is not None:
            label_P = inputs["label"][inputs["opens"] == 1][0::2]
            return Loss(((first_PD * second_PD).sum(1) - label_P).square().sum(), count)
        like_PP = first_PD @ second_PD.T / self.temperature
        own_P = torch.arange(len(like_PP), device=like_PP.device)
        loss = F.cross_entropy(like_PP, own_P, reduction="sum")
        if self.symmetric:
            loss = (loss + F.cross_entropy(like_PP.T, own_P, reduction="sum")) / 2
        return Loss(loss, count)

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        first_PD, second_PD = self.vectors(output, inputs)
        like_PP = first_PD @ second_PD.T
        nearest = like_PP.argmax(1) == torch.arange(len(like_PP), device=like_PP.device)
        windows_T = torch.bincount((inputs["opens"] == 1).cumsum(0) - 1)
        most_P = torch.maximum(windows_T[0::2], windows_T[1::2])
        return list(zip(like_PP.diagonal().tolist(), nearest.tolist(), most_P.tolist(), strict=True))

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        similarity, nearest, windows = outputs[0]
        return SimilarityAnswer(windows, similarity=similarity, is_nearest=nearest if self.scale is None else None)

    def meter(self) -> Meter:
        return SimilarityMeter() if self.scale is not None else MeanMeter("retrieval_accuracy")

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, SimilarityAnswer)
        assert isinstance(record, PairRecord)
        if self.scale is None:
            meter.add(float(bool(answer.is_nearest)), 1)
            return
        low, high = self.scale
        self._target(record)
        meter.add(low + answer.similarity * (high - low), record.label)

    def show_target(self, record: Record) -> str:
        assert isinstance(record, PairRecord)
        return "(its pair)" if self.scale is None else f"{record.label:.4g}"

    def is_correct(self, answer: Answer, record: Record) -> bool | None:
        assert isinstance(answer, SimilarityAnswer)
        return None if self.scale is not None else bool(answer.is_nearest)


def _own(own: Sequence[bool], *, opens: bool, closes: bool) -> Any:
    """1 for each token that counts: those the window owns, and the special ones at both ends of the text."""
    counts = np.array(own, np.float32)
    inside = np.flatnonzero(counts)
    if len(inside):
        counts[: inside[0]] = float(opens)
        counts[inside[-1] + 1 :] = float(closes)
    else:
        counts[:] = 1.0
    return counts
