"""Words that change the answer: replacements of single words after which a classifier predicts another class.

Candidates come from a masked language model: the model itself if it has such a head, or one that is given; else from
the nearest neighbors in the embedding table, which may be less fluent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.errors import InputError
from regard.look.explain.explain import default_method, explain
from regard.look.explain.scorer import embedding_modules
from regard.look.meaning import nearest_tokens
from regard.model.transformer import Transformer
from regard.progress import OnProgress, Progress
from regard.tasks.classify import LabelAnswer

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True)
class Counterfactual:
    """A text that differs in one word and has another answer."""

    text: str
    start: int  # characters of the word in the original text
    end: int
    word: str
    replacement: str
    label: str  # the new answer
    probability: float


@dataclass(frozen=True)
class Counterfactuals:
    """The replacements that change an answer, and where the candidates come from."""

    label: str  # the answer to the original text
    probability: float
    source: str  # "masked language model" or "embedding neighbors"
    tried: int
    changes: tuple[Counterfactual, ...]

    def json(self) -> dict[str, Any]:
        return asdict(self)


def counterfactuals(
    model: Model,
    text: str,
    *,
    masked_model: Model | None = None,
    words: int = 5,
    candidates: int = 20,
    progress: OnProgress | None = None,
) -> Counterfactuals:
    """Replace each of the most important words by its candidates, and keep what changes the answer.

    masked_model: a masked language model that proposes words, with any tokenizer.
    words: how many words are replaced, the most important first.
    candidates: replacements that are tried for each word.
    """
    if words < 1 or candidates < 1:
        raise InputError(f"words is {words} and candidates is {candidates}; both must be at least 1.")
    (answer,) = model.predict([text])
    if not isinstance(answer, LabelAnswer):
        raise InputError("counterfactual words are for models that predict one label for a text.")
    important = explain(model, text, method=default_method(model)).top_words(words)
    proposer = masked_model or (model if "masked" in model.network.heads else None)
    source = "embedding neighbors" if proposer is None else "masked language model"
    changes: list[Counterfactual] = []
    tried = 0
    for done, word in enumerate(important, start=1):
        options = _candidates(model, proposer, text, word.start, word.end, candidates)
        variants = [text[: word.start] + option + text[word.end :] for option in options]
        tried += len(variants)
        for option, variant, new in zip(options, variants, model.predict(variants) if variants else [], strict=True):
            if isinstance(new, LabelAnswer) and new.label != answer.label:
                changes.append(Counterfactual(variant, word.start, word.end, word.text, option, new.label, new.score))
        if progress is not None:
            progress(Progress("words", done, len(important)))
    changes.sort(key=lambda change: -change.probability)
    return Counterfactuals(answer.label, answer.score, source, tried, tuple(changes))


def _candidates(model: Model, proposer: Model | None, text: str, start: int, end: int, count: int) -> list[str]:
    """Words that may stand in place of a word, without the word itself."""
    own = text[start:end].lower()
    if proposer is not None:
        (filled,) = proposer.fill(text[:start] + "[MASK]" + text[end:], top=count + 10)[:1]
        names = [one.word for one in filled]
    else:
        names = _neighbor_words(model, text[start:end], 4 * count)
    chosen = [name for name in names if name.isalpha() and name.lower() != own]
    return list(dict.fromkeys(chosen))[:count]


def _neighbor_words(model: Model, word: str, count: int) -> list[str]:
    """Tokens that are words, with embeddings similar to those of a word's tokens."""
    network = model.network
    if not isinstance(network, Transformer):
        raise InputError("candidates come from the embeddings of a Transformer; give a masked language model.")
    tokenizer = model.require_tokenizer()
    ids = torch.tensor(tokenizer.encode(word, special=False).ids, device=model.device)
    with torch.no_grad():
        vector_E = embedding_modules(network)[0].weight[ids].float().mean(0)
        tokens = [token for token, _ in nearest_tokens(model, network, vector_E, count)]
    names = [tokenizer.backend.id_to_token(token) or "" for token in tokens]
    words = np.array([tokenizer.decode([token]).strip() for token in tokens])
    whole = [not name.startswith("##") for name in names]
    return [str(name) for name, is_word in zip(words, whole, strict=True) if is_word]
