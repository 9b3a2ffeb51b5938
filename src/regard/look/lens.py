"""What each layer would predict, through the model's own head (the logit lens, nostalgebraist 2020).

The hidden states after each layer go through the final norm and the head as if the layer were the last one. A language
model predicts words at every position, a classifier its classes, a tagger tags at every token, a reader the start and
the end of the answer.

Shapes: N tokens, D width, V vocabulary, C classes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import ModelConfig, RecurrentConfig
from regard.errors import InputError, setting
from regard.look.explain.scorer import Variant, VariantBatch
from regard.look.explain.targets.resolve import resolve_target
from regard.look.explain.tokenized import InputSequence, TokenizedText
from regard.model.hooks import record
from regard.model.transformer import Transformer

if TYPE_CHECKING:
    from regard.predict.model import Model

Probabilities = NDArray[np.float32]


class LensWord(NamedTuple):
    """A token that a layer predicts, and its probability."""

    token: str
    probability: float


@dataclass(frozen=True, eq=False)
class Lens:
    """Predictions by layer; layer 0 is the embeddings.

    kind: "words" (language models), "classes", "tags" or "spans".
    probabilities: (layers, classes) of classes; (layers, tokens, classes) of tags; (layers, tokens, 2) of spans (start
        and end). None for words.
    words: for each layer and token the most likely words; empty for the other kinds.
    """

    kind: str
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    sequence_ids: tuple[int | None, ...]
    layers: tuple[int, ...]
    labels: tuple[str, ...] = ()
    probabilities: Probabilities | None = None
    words: tuple[tuple[tuple[LensWord, ...], ...], ...] = ()
    windows: int = 1  # of the text; the first one is shown

    def json(self) -> dict[str, Any]:
        """The predictions as a plain dict."""
        values = {name: value for name, value in asdict(self).items() if name not in ("probabilities", "words")}
        if self.probabilities is not None:
            values["probabilities"] = self.probabilities.round(6).tolist()
        if self.words:
            values["words"] = [[[word._asdict() for word in words] for words in layer] for layer in self.words]
        return values


def lens(model: Model, text: str, pair: str | None = None, *, top: int = 5) -> Lens:
    """The predictions of every layer; see `Model.lens`."""
    network = model.network
    if isinstance(model.config, RecurrentConfig):
        raise InputError("a recurrent network has no blocks whose states a head could read one by one.")
    if not isinstance(model.config, ModelConfig) or not isinstance(network, Transformer):
        raise InputError("a baseline without Transformer blocks has no layers to look into.")
    if not set(network.heads) & {"language", "masked", "sequence", "token", "span"}:
        raise InputError("this model has no head, so its layers predict nothing. Train it on a task: regard train.")
    if top < 1:
        raise InputError(f"{setting('top')} is {top}, expected at least 1 word.")
    tokenized = _tokenized(model, text, pair)
    sequence = tokenized.sequences[0]
    variant = Variant(sequence.ids, sequence.segments, sequence.decoder_ids, ())
    batch = VariantBatch.of([variant], model.device)
    with torch.no_grad():
        states = layer_states(network, batch)
        return _read(model, tokenized, sequence, batch, states, top)


def _tokenized(model: Model, text: str, pair: str | None) -> TokenizedText:
    if "masked" in model.network.heads and "sequence" not in model.network.heads:
        from regard.look.explain.tokenized import from_encoding

        tokenizer = model.require_tokenizer()
        return from_encoding(tokenizer, text, tokenizer.encode(text, pair), segments=model.config.segments > 1)
    return resolve_target(model, text, pair)[0]


def layer_states(network: Transformer, batch: VariantBatch) -> list[Tensor]:
    """(N, D) hidden states of the main stack: embeddings, then after each layer; all with the final norm."""
    stack = network.main
    name = "encoder" if network.decoder is None else "decoder"
    with record(network, f"{name}.embeddings", f"{name}.layers.*") as outputs:
        network(batch.tokens, batch.decoder)
    states = [outputs[f"{name}.embeddings"]]
    for layer in range(stack.depth):
        index = stack.layer_index(layer)
        run = [stack.layer_index(other) for other in range(layer)].count(index)
        states.append(outputs.runs(f"{name}.layers.{index}")[run])
    return [stack.norm(state_ND) for state_ND in states]


def _read(
    model: Model,
    text: TokenizedText,
    sequence: InputSequence,
    batch: VariantBatch,
    states: list[Tensor],
    top: int,
) -> Lens:
    """The predictions of the head for each layer."""
    heads = model.network.heads
    main = batch.tokens if batch.decoder is None else batch.decoder
    index = sequence.index if batch.decoder is None else sequence.index[len(sequence.ids) :]
    shared: dict[str, Any] = {
        "tokens": tuple(text.tokens[i] for i in index),
        "offsets": tuple(text.offsets[i] for i in index),
        "sequence_ids": tuple(text.sequence_ids[i] for i in index),
        "layers": tuple(range(len(states))),
        "windows": len(text.sequences),
    }
    labels = model.labels or ()
    if "sequence" in heads:
        logits = [heads["sequence"](heads["pooled"](state_ND, main)) for state_ND in states]
        chances = torch.stack([_class_chances(model, one)[0] for one in logits])
        return Lens("classes", labels=labels, probabilities=_array(chances), **shared)
    if "token" in heads:
        tags = torch.stack([heads["token"](state_ND).float().softmax(-1) for state_ND in states])
        return Lens("tags", labels=labels, probabilities=_array(tags), **shared)
    if "span" in heads:
        spans = torch.stack([heads["span"](state_ND).float().softmax(0) for state_ND in states])
        return Lens("spans", labels=("start", "end"), probabilities=_array(spans), **shared)
    head = heads["language"] if "language" in heads else heads["masked"]
    words = tuple(_top_words(model, head(state_ND).float().softmax(-1), top) for state_ND in states)
    return Lens("words", words=words, **shared)


def _class_chances(model: Model, logits_BC: Tensor) -> Tensor:
    """Probabilities as the task computes them; numbers stay as they are."""
    from regard.predict.model_task import task_for
    from regard.tasks.classify import Classify

    task = task_for(model.checkpoint, model.folder)
    assert isinstance(task, Classify)
    logits_BC = logits_BC.float()
    if task.kind == "number":
        return logits_BC
    logits_BC = logits_BC / task.temperature
    return logits_BC.softmax(-1) if task.kind == "single" else logits_BC.sigmoid()


def _top_words(model: Model, chances_NV: Tensor, top: int) -> tuple[tuple[LensWord, ...], ...]:
    tokenizer = model.require_tokenizer().output_tokenizer
    best = chances_NV[:, : tokenizer.size].topk(min(top, tokenizer.size))
    names: dict[int, str] = {}
    for token in best.indices.flatten().tolist():
        names.setdefault(token, tokenizer.backend.id_to_token(token) or "")
    return tuple(
        tuple(LensWord(names[token], chance) for token, chance in zip(tokens, values, strict=True))
        for tokens, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


def _array(values: Tensor) -> Probabilities:
    array: Probabilities = values.cpu().numpy()
    return array
