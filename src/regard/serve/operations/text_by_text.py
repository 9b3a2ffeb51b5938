"""Operations that run one text after the other, by the same calls as in Python: fill, translate, generate."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from regard.data.batching.sequences import split_into_windows
from regard.errors import InputError
from regard.generate.cancel import GenerationCancelled, cancellable
from regard.generate.generator import Continuation
from regard.generate.settings import DecodingSettings
from regard.predict.masked_words import find_masks
from regard.predict.model import Model
from regard.predict.model_task import capabilities
from regard.serve.operations.operation import Operation, Prepared
from regard.serve.served import Item

PAIRS = (("question", "context"), ("first", "second"))  # two texts that are explained together
EXPLAIN_RUNS = 20  # passes that an explanation is counted as in the queue; methods differ


class TextByTextOperation(Operation):
    """A text is one sequence of the queue, however the model splits it."""

    name = ""

    def __init__(self, model: Model, **options: Any) -> None:
        super().__init__(model)
        self.options = {name: value for name, value in options.items() if value is not None}

    @property
    def group(self) -> Hashable:
        return (self.name, json.dumps(self.options, sort_keys=True))

    def prepare(self, items: Sequence[Item]) -> list[Prepared]:
        return [self._prepared(number, item) for number, item in enumerate(items)]

    def _prepared(self, number: int, item: Item) -> Prepared:
        if not isinstance(item, str):
            raise InputError(f"text {number} is {item!r:.80} ({type(item).__name__}); expected a text.")
        if not item.strip():
            raise InputError(f"text {number} is empty. Leave it out, or give it words.")
        tokens = len(self.model.require_tokenizer().encode(item)) + self.new_tokens()
        return Prepared((max(1, tokens),), item)

    def new_tokens(self) -> int:
        """Tokens that are generated for a text at most."""
        return 0

    def run(self, rows: Sequence[tuple[Prepared, int]]) -> list[Any]:
        return [self._output(prepared) for prepared, _ in rows]

    def _output(self, prepared: Prepared) -> dict[str, Any] | Exception:
        """The answer to a text or its error, so that the others of a batch do not run again."""
        try:
            with cancellable(prepared.left):
                return self.run_prepared(prepared)
        except Exception as error:  # also GenerationCancelled, which no one reads
            return error

    def run_prepared(self, prepared: Prepared) -> dict[str, Any]:
        return self.run_one(prepared.payload)

    def run_one(self, text: str) -> dict[str, Any]:
        raise NotImplementedError

    def answer(self, prepared: Prepared, outputs: Sequence[Any]) -> dict[str, Any]:
        answer: dict[str, Any] = outputs[0]
        return answer


class FillOperation(TextByTextOperation):
    """The most likely words for each mask: the same as `Model.fill`."""

    name = "fill"

    def __init__(self, model: Model, *, top: int = 5) -> None:
        super().__init__(model, top=top)
        if "masked" not in model.network.heads:
            raise InputError(f"this model has no head for masked words. {capabilities(model.network)}")

    def _prepared(self, number: int, item: Item) -> Prepared:
        prepared = super()._prepared(number, item)
        find_masks(self.model.require_tokenizer(), item)
        return prepared

    def run_one(self, text: str) -> dict[str, Any]:
        masks = [[dataclasses.asdict(word) for word in words] for words in self.model.fill(text, **self.options)]
        tokenizer = self.model.require_tokenizer()
        encoding = tokenizer.encode(find_masks(tokenizer, text)[0])
        windows = len(list(split_into_windows(0, encoding, self.model.config.max_tokens)))
        return {"masks": masks, "truncated": False, "windows": windows}


class ExplainOperation(TextByTextOperation):
    """How much each word contributed to an answer: the same as `Model.explain`, of a text or of two."""

    name = "explain"

    def _prepared(self, number: int, item: Item) -> Prepared:
        texts = item if isinstance(item, list) else [item]
        for first, second in PAIRS:
            if isinstance(item, dict) and item.keys() == {first, second}:
                texts = [item[first], item[second]]
        if len(texts) not in (1, 2):
            raise InputError(f"input {number} has {len(texts)} texts, expected one or two.")
        tokens = sum(super(ExplainOperation, self)._prepared(number, text).lengths[0] for text in texts)
        return Prepared((EXPLAIN_RUNS * tokens,), texts)

    def run_prepared(self, prepared: Prepared) -> dict[str, Any]:
        texts = prepared.payload
        values = self.model.explain(*texts, **self.options).json()
        return {"truncated": False, "windows": 1, **values}


class TranslateOperation(TextByTextOperation):
    """Translations: the same as `Model.translations` for each text."""

    name = "translate"

    def __init__(self, model: Model, **options: Any) -> None:
        super().__init__(model, **options)
        if model.config.kind != "encoder-decoder":
            raise InputError(
                f"only encoder-decoders translate, and the network of this model ({model.family}) is none. "
                f"{capabilities(model.network)}"
            )
        decoding = {name: value for name, value in self.options.items() if name not in ("alignment", "prefix")}
        DecodingSettings.from_options(decoding, defaults=model.writer.defaults)

    def run_one(self, text: str) -> dict[str, Any]:
        best, *others = self.model.translations([text], **self.options)[0]
        answer = best.json()
        if self.options.get("best", 1) > 1:
            answer["candidates"] = [{"translation": each.translation, "score": each.score} for each in (best, *others)]
        return answer


class GenerateOperation(TextByTextOperation):
    """Continuations: the same as `Model.continuations` for each prompt."""

    name = "generate"

    def __init__(self, model: Model, **options: Any) -> None:
        super().__init__(model, **options)
        self.settings = DecodingSettings.from_options(self.options, defaults=model.writer.defaults)

    def new_tokens(self) -> int:
        return self.settings.max_tokens * max(self.settings.beams, self.settings.best)

    def run_one(self, text: str) -> dict[str, Any]:
        best, *others = self.model.continuations([text], **self.options)[0]
        answer = generation_json(best)
        if others:
            shown = (best, *others)
            answer["candidates"] = [
                {"text": each.text, "score": each.score, "finish_reason": each.finish_reason} for each in shown
            ]
        return answer


class StreamOperation(GenerateOperation):
    """One continuation in pieces, each handed to `on_piece` as soon as it is final: the same as `Model.stream`."""

    def __init__(self, model: Model, *, on_piece: Callable[[str], None], **options: Any) -> None:
        super().__init__(model, **options)
        self.on_piece = on_piece

    @property
    def group(self) -> Hashable:
        return ("stream", id(self))

    def run_prepared(self, prepared: Prepared) -> dict[str, Any]:
        pieces = self.model.stream(prepared.payload, **self.options)
        while True:
            try:
                self.on_piece(next(pieces))
            except StopIteration as end:
                return generation_json(end.value)
            if prepared.left.is_set():
                raise GenerationCancelled


def generation_json(best: Continuation) -> dict[str, Any]:
    """The answer of a generation; a prompt is never cut, so it is one window."""
    values: Mapping[str, Any] = {
        "text": best.text,
        "score": best.score,
        "finish_reason": best.finish_reason,
        "new_tokens": len(best.ids),
    }
    return {**values, "truncated": False, "windows": 1}
