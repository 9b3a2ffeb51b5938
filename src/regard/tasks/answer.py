"""Extractive question answering (SQuAD): the answer is a span of the context.

Each token of a window has a score as the start and one as the end of the answer; the first token ([CLS]) means "no
answer in this window". A long context is split into windows, each with the whole question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data import records as rows
from regard.data.batching.assembly import Cuts, SequencePart, Sequences, assemble, cut_rows
from regard.data.batching.examples import Examples, Inputs
from regard.data.batching.framing import Frame, context_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.windows import Window
from regard.data.corpus.masking import IGNORE
from regard.data.records import AnswerRecord, Record
from regard.errors import InputError
from regard.metrics.answers import answer_scores
from regard.metrics.calibration import check_temperature, fit_confidence_temperature
from regard.metrics.meter import AnswerMeter, Meter
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.tasks.task import Answer, Loss, RowOutputs, Task, internal, reject_label_settings
from regard.text.flat_tokens import FlatTokens, Ints, bounds_of
from regard.text.word_spans import after_marks

CONTEXT = 3  # the part of a sequence that is the context
MIN_ROWS = 30  # validation rows that a temperature is tuned on
BEST = 20  # candidates of a window, and of a question
SHOWN = 5  # of them in an answer
NO_ANSWER = "(no answer)"  # as it is shown
NO_CANDIDATE = 1e6  # score of no answer where the context has no token
Places = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


class Candidate(NamedTuple):
    """A span of the context in code points, end exclusive; empty and without a position if there is no answer."""

    answer: str
    start: int | None
    end: int | None
    score: float


NOTHING = Candidate("", None, None, 0.0)


@dataclass(frozen=True, repr=False)
class SpanAnswer(Answer):
    """The answer, its position in the context, and the best few candidates with their probabilities.

    `answer` is empty, and `start` and `end` are None, where the context does not answer the question.
    `best` is the best text whether or not the question is left unanswered, and `no_answer` the score of no answer less
    that of the best text; None where every question has an answer.
    """

    answer: str = ""  # empty if the question has no answer in the context
    start: int | None = None  # character offset in the context
    end: int | None = None  # exclusive
    score: float = 0.0  # probability
    candidates: tuple[Candidate, ...] = ()  # the most likely answers
    best: str = internal("")
    no_answer: float | None = internal(None)

    @property
    def confidence(self) -> float:
        return self.score

    def display(self) -> str:
        return f"{self.answer or NO_ANSWER}  {self.score:.3f}"


class WindowSpans(NamedTuple):
    """The best spans of a window, in code points, with their scores; and the score of its first token (no answer)."""

    start: Places
    end: Places
    score: Floats
    none: float


@dataclass(frozen=True)
class QuestionAnswering(Task):
    """A question is left unanswered where no answer beats the best text by more than `threshold`.

    temperature: probabilities are those of the scores divided by it; tuned on the validation rows, as is the threshold.
    """

    name: ClassVar[str] = "answer"
    title: ClassVar[str] = "question-answering model"
    record: ClassVar[type[Any]] = AnswerRecord
    input_roles: ClassVar[tuple[str, ...]] = ("question", "context")
    pipeline_tag: ClassVar[str] = "question-answering"
    example_call: ClassVar[str] = 'predict([("a question", "a context")])'
    command_example: ClassVar[str] = '"a question" --context page.txt'
    model_heads: ClassVar[tuple[str, ...]] = ("span",)
    masks_words: ClassVar[bool] = True

    unanswerable: bool = False  # whether there are questions without an answer
    threshold: float = 0.0
    max_tokens: int = 30  # of an answer
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.max_tokens < 1:
            raise InputError(f"answers of at most {self.max_tokens} tokens were requested, expected at least 1.")

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, class_balance: str = "none", label_smoothing: float = 0.0, **_: Any
    ) -> Self:
        reject_label_settings(
            "answers to questions have none", class_balance=class_balance, label_smoothing=label_smoothing
        )
        known = {bool(_known(record)) for record in records}
        if True not in known:
            raise InputError("the training data has no question with an answer; there is nothing to learn.")
        return cls(unanswerable=False in known)

    def settings(self) -> dict[str, Any]:
        return {
            "unanswerable": self.unanswerable,
            "threshold": self.threshold,
            "longest": self.max_tokens,
            "temperature": self.temperature,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls(
            unanswerable=bool(settings.get("unanswerable", False)),
            threshold=float(settings.get("threshold", 0.0)),
            max_tokens=int(settings.get("longest", 30)),
            temperature=float(settings.get("temperature", 1.0)),
        )

    @property
    def heads(self) -> dict[str, int]:
        return {"span": 2}

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        question_records = [record for record in records if isinstance(record, AnswerRecord)]
        number: dict[str, int] = {}
        numbers = [number.setdefault(record.context, len(number)) for record in question_records]
        context_of = np.array(numbers, np.int64)  # questions share their contexts
        contexts = preprocessing.tokenizer.flat_batch(list(number), offsets=True)
        questions = preprocessing.tokenizer.flat_batch([record.question for record in question_records])
        sequences, cuts = _sequences(question_records, questions, contexts, context_of, preprocessing)
        by_sequence: dict[str, Any] = {}
        if labeled:
            starts, ends = _answer_tokens(
                [_known(record) for record in question_records], contexts, list(number), context_of
            )
            at = sequences.positions[CONTEXT] - sequences.examples.bounds[:-1]
            inside = (cuts.start <= starts[cuts.row]) & (ends[cuts.row] < cuts.end) & (starts[cuts.row] >= 0)
            for name, tokens in (("start", starts), ("end", ends)):
                by_sequence[name] = np.where(inside, at + tokens[cuts.row] - cuts.start, 0)
        first = contexts.bounds[context_of[cuts.row]] + cuts.start
        by_token = {
            name: sequences.column(CONTEXT, contexts.offsets[:, side], first, cuts.lengths, np.zeros_like(first))
            for side, name in enumerate(("begin", "finish"))
        }
        return sequences.build(by_sequence=by_sequence, by_token=by_token)

    def prepare(self, inputs: Inputs) -> Inputs:
        """An answer needs the context and the first token alone, but the loss needs all tokens: their softmax is taken
        over the question too. On a GPU the number of tokens would have to be waited for."""
        if "start" in inputs or inputs.fixed_shape or inputs.tokens.ids.device.type != "cpu":
            return inputs
        return inputs.selected((inputs["begin"] >= 0) | (inputs.tokens.positions == 0))

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """Span loss of BERT on SQuAD (Devlin et al. 2019, https://arxiv.org/abs/1810.04805).

        1. A softmax over the tokens of a window gives each token a probability of being the start of the answer, and
           another softmax one of being its end.
        2. The loss is the mean of both cross-entropies; the target of a window without the answer is its first token.
        """
        assert output.logits is not None
        logits_N2, batch = output.logits.float(), inputs.tokens
        wanted_B2 = torch.stack((inputs["start"], inputs["end"]), 1)
        keep_B = wanted_B2[:, 0] != IGNORE
        at_B2 = (batch.first().unsqueeze(1) + wanted_B2.clamp(min=0)).clamp(max=batch.tokens - 1)
        losses_B = (_log_sums(logits_N2, batch) - logits_N2.gather(0, at_B2)).mean(1)
        return Loss(torch.where(keep_B, losses_B, 0.0).sum(), keep_B.float().sum())

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        logits_N2 = output.logits.float().cpu().numpy()
        begin, finish = (inputs[name].cpu().numpy() for name in ("begin", "finish"))
        outputs = []
        bounds = inputs.tokens.bounds[: inputs.rows + 1].cpu().numpy()
        if inputs.at is not None:
            bounds = np.searchsorted(inputs.at.cpu().numpy(), bounds)
        for first, end in pairwise(bounds.tolist()):
            context = first + np.flatnonzero(begin[first:end] >= 0)  # these are contiguous
            starts, ends, scores = best_spans(logits_N2[context, 0], logits_N2[context, 1], max_length=self.max_tokens)
            none = float(logits_N2[first].sum()) if end > first else 0.0
            outputs.append(WindowSpans(begin[context[starts]], finish[context[ends]], scores, none))
        return outputs

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        assert isinstance(record, AnswerRecord)
        spans = _merged(record.context, outputs)
        texts = [Candidate(record.context[start:end], start, end, score) for (start, end), score in spans]
        best = texts[0].answer if texts else ""
        none = NOTHING._replace(score=min(window.none for window in outputs))
        no_answer = none.score - texts[0].score if texts else NO_CANDIDATE
        ranked = _chances([*texts, none] if self.unanswerable else texts, self.temperature)
        chosen = "" if self.unanswerable and no_answer > self.threshold else best
        top = next((candidate for candidate in ranked if candidate.answer == chosen), NOTHING)
        return SpanAnswer(
            len(outputs),
            **top._asdict(),
            candidates=tuple(ranked[:SHOWN]),
            best=best,
            no_answer=no_answer if self.unanswerable else None,
        )

    def meter(self) -> Meter:
        return AnswerMeter(threshold=self.threshold)

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, SpanAnswer)
        assert isinstance(meter, AnswerMeter)
        meter.add(answer.best, [gold.text for gold in _known(record)], answer.no_answer)

    def is_correct(self, answer: Answer, record: Record) -> bool:
        assert isinstance(answer, SpanAnswer)
        return answer_scores(answer.answer, [gold.text for gold in _known(record)])[0] == 1

    def show_target(self, record: Record) -> str:
        return " / ".join(dict.fromkeys(gold.text for gold in _known(record))) or NO_ANSWER

    def show_answer(self, answer: Answer) -> str:
        assert isinstance(answer, SpanAnswer)
        return answer.answer or NO_ANSWER

    @property
    def logit_temperature(self) -> float:
        return self.temperature

    def tuned(self, meter: Meter, rows: Sequence[RowOutputs] = ()) -> Self:
        """With the temperature, and where some rows have no answer the threshold, that do best on these rows."""
        tuned = self
        if isinstance(meter, AnswerMeter) and self.unanswerable and "has_answer_f1" in meter.scores():
            tuned = replace(self, threshold=meter.best()["f1"][1])
        if len(rows) < MIN_ROWS:
            return tuned
        return replace(tuned, temperature=round(fit_confidence_temperature(tuned._confidences(rows)), 6))

    def _confidences(self, rows: Sequence[RowOutputs]) -> Iterator[tuple[list[float], bool]]:
        """The scores of the candidates of each row less that of the answer, and whether the answer is right."""
        plain = replace(self, temperature=1.0)
        for row in rows:
            answer = plain.answer(row.record, row.outputs)
            assert isinstance(answer, SpanAnswer)
            assert isinstance(row.record, AnswerRecord)
            scores = [score for _, score in _merged(row.record.context, row.outputs)]
            scores += [min(window.none for window in row.outputs)] if self.unanswerable else []
            if scores:
                own = scores[-1] if self.unanswerable and not answer.answer else scores[0]
                yield [score - own for score in scores], self.is_correct(answer, row.record)


def best_spans(
    starts_T: Floats, ends_T: Floats, *, max_length: int, count: int = BEST
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
    """First token, last token and score of the best spans of at count `max_length` tokens, the best first.

    The result is exact: the best `count` spans start at tokens whose own best span is among the best `count` of these.
    """
    beyond = np.full(max_length - 1, -np.inf, np.float32)
    band_TL = (
        np.lib.stride_tricks.sliding_window_view(np.concatenate((ends_T, beyond)), max_length) if len(ends_T) else 0
    )
    scores_TL = np.reshape(starts_T[:, None] + band_TL, (-1, max_length))
    if len(scores_TL) > count:
        rows_K = np.argpartition(-scores_TL.max(1), count - 1)[:count]
    else:
        rows_K = np.arange(len(scores_TL))
    flat = scores_TL[rows_K].ravel()
    chosen = np.argpartition(-flat, count - 1)[:count] if len(flat) > count else np.arange(len(flat))
    chosen = chosen[np.argsort(-flat[chosen], kind="stable")]
    chosen = chosen[np.isfinite(flat[chosen])]
    first = rows_K[chosen // max_length]
    return first, first + chosen % max_length, flat[chosen]


def _known(record: Record) -> tuple[rows.AnswerSpan, ...]:
    """The answers of a record; an error where it is not labeled."""
    assert isinstance(record, AnswerRecord)
    if record.answers is None:
        raise record.place.error(
            "the row has no answers", column="answers", expected="answers, or an empty list for none"
        )
    return record.answers


def _sequences(
    records: Sequence[AnswerRecord],
    questions: FlatTokens,
    contexts: FlatTokens,
    context_of: Ints,
    preprocessing: Preprocessing,
) -> tuple[Sequences, Cuts]:
    """The whole question with each window of its context, and these windows."""
    frame, limit = Frame.of(preprocessing.tokenizer), preprocessing.max_tokens
    lengths = contexts.lengths[context_of]
    long = lengths[:0]
    if limit is not None:
        long = np.flatnonzero(questions.lengths + lengths + frame.pair_special_count > limit)

    def windows_of(row: int) -> Iterator[Window]:
        question, context = range(int(questions.lengths[row])), range(int(lengths[row]))
        try:
            cuts = context_windows(frame, question, context, max_tokens=limit, overlap=preprocessing.overlap)
        except InputError as error:
            raise records[row].place.error(str(error).rstrip(".")) from error
        return (cut.parts[1].window for cut in cuts)

    cuts = cut_rows(lengths, long, windows_of)
    whole = cuts._replace(start=np.zeros_like(cuts.start), end=questions.lengths[cuts.row])
    before, between, after = (
        SequencePart.special(one, len(cuts.row)) for one in (frame.before, frame.between, frame.after)
    )
    question = SequencePart.text(questions, whole, segment=frame.segments[0])
    context = SequencePart.text(contexts, cuts, segment=frame.segments[1], texts=context_of)
    parts = (before, question, between, context, after)
    return assemble(cuts.row, parts, segments=preprocessing.segments), cuts


def _answer_tokens(
    answers: Sequence[Sequence[rows.AnswerSpan]], contexts: FlatTokens, texts: Sequence[str], context_of: Ints
) -> tuple[Ints, Ints]:
    """First and last token of the first answer to each question; -1 where there is none, or where it left no token.

    texts: the contexts, which are searched all at once, as if each followed the one before it.
    """
    sizes = bounds_of([len(text) + 1 for text in texts])[:-1]
    places = np.maximum.accumulate(contexts.offsets + np.repeat(sizes, contexts.lengths)[:, None])
    spans = [(spans[0].start, spans[0].start + len(spans[0].text)) if spans else (-1, -1) for spans in answers]
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    shift, before = sizes[context_of], contexts.bounds[context_of]
    first = np.searchsorted(places[:, 1], starts + shift, side="right") - before
    last = np.searchsorted(places[:, 0], ends + shift, side="left") - 1 - before
    none = (starts < 0) | (first > last)
    return np.where(none, -1, first), np.where(none, -1, last)


def _log_sums(logits_NC: Tensor, batch: Ragged) -> Tensor:
    """(B, C) the logarithm of the sum of exponentials over the tokens of each sequence."""
    top_BC = batch.max(logits_NC.detach())
    parts_NC = (logits_NC - top_BC[batch.sequence_ids]).exp()
    sums_BC = torch.zeros_like(top_BC).index_add_(0, batch.sequence_ids, parts_NC)
    return top_BC + sums_BC.clamp(min=torch.finfo(sums_BC.dtype).tiny).log()


def _merged(context: str, outputs: Sequence[WindowSpans]) -> list[tuple[tuple[int, int], float]]:
    """The best spans of all windows, without spaces at their edges, each once with its best score."""
    scores: dict[tuple[int, int], float] = {}
    for window in outputs:
        for start, end, score in zip(*(values.tolist() for values in window[:3]), strict=True):
            text = context[start:end]
            left = start + len(text) - len(text.lstrip())
            edges = left, left + len(text.strip())
            if edges[0] < edges[1]:
                edges = left, after_marks(context, edges[1])
                scores[edges] = max(score, scores.get(edges, score))
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:BEST]


def _chances(candidates: Sequence[Candidate], temperature: float = 1.0) -> list[Candidate]:
    """The same with probabilities in place of scores, the best first."""
    top = max((candidate.score for candidate in candidates), default=0.0)
    parts = [math.exp((candidate.score - top) / temperature) for candidate in candidates]
    whole = sum(parts)
    ranked = [candidate._replace(score=part / whole) for candidate, part in zip(candidates, parts, strict=True)]
    return sorted(ranked, key=lambda candidate: -candidate.score)
