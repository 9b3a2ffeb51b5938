"""The part of `Model` that looks inside: explanations of answers, predictions of each layer, switched-off heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from regard.progress import OnProgress

if TYPE_CHECKING:  # the package `look` is above this one: it is imported by the methods
    from regard.look.counterfactuals import Counterfactuals
    from regard.look.explain.explanation import Explanation
    from regard.look.lens import Lens
    from regard.look.meaning import Meaning
    from regard.predict.model import Model


class LookMixin:
    """The part of `Model` that looks inside."""

    def explain(
        self,
        text: str,
        pair: str | None = None,
        *,
        method: str | None = None,
        target: str | None = None,
        steps: int | None = None,
        faithfulness: bool = False,
        seed: int = 0,
        progress: OnProgress | None = None,
    ) -> Explanation:
        """How much each word of a text contributed to an answer: `.words`, `.token_scores`, `.json()`.

        pair: the second text of a pair; the context of a question; for a sentence encoder the text whose similarity is
            explained.
        method: decomposition, occlusion, integrated_gradients, attention_rollout, attention or random; the most
            faithful one that fits the network if not given. Those that fit a network:
            `regard.look.explain.methods.methods_for(model.network)`.
        target: what is explained: a class; words of the text, or WORDS=TAG, for a tagger; a part of the context for a
            question; a word of the translation or its number; the next word; the word for a mask. By default the
            answer that the model gives.
        steps: points on the path of integrated gradients; as many as are needed if not given.
        faithfulness: also measure how faithful the explanation is on this text, between the limits that a search finds.

            explanation = model.explain("A warm and funny film.")
            [(word.text, word.score) for word in explanation.top_words(3)]
        """
        from regard.look.explain.explain import explain

        return explain(
            cast("Model", self),
            text,
            pair,
            method=method,
            target=target,
            steps=steps,
            faithfulness=faithfulness,
            seed=seed,
            progress=progress,
        )

    def lens(self, text: str, pair: str | None = None, *, top: int = 5) -> Lens:
        """What each layer would predict, through the model's own head; layer 0 is the embeddings.

        A language model predicts the `top` words at every position, a classifier its classes, a tagger tags at every
        token, a reader the start and the end of the answer.

            model.lens("A warm and funny film.").probabilities       # (layers, classes) of a classifier
        """
        from regard.look.lens import lens

        return lens(cast("Model", self), text, pair, top=top)

    @contextmanager
    def ablate(
        self,
        heads: Sequence[tuple[int, int]] = (),
        *,
        layers: Sequence[int] = (),
        stack: str = "main",
        cross: bool = False,
    ) -> Iterator[Model]:
        """Switch heads or whole layers off while the context is open.

        heads: pairs of layer (from 1, -1 is the last) and head (from 0).
        stack: of an encoder-decoder, "encoder" or "decoder"; `cross` is for the heads of its cross-attention.

            with model.ablate([(1, 0), (1, 3)]):
                model.predict(["A warm and funny film."])
        """
        from regard.look.ablation import ablate

        model = cast("Model", self)
        with ablate(model.network, heads=heads, layers=layers, stack=stack, cross=cross):
            yield model

    def without_heads(self, heads: Sequence[tuple[int, int]], *, stack: str = "main", cross: bool = False) -> Model:
        """A copy of the model without these heads, for `save`: their weights are zero, the shape stays the same."""
        from regard.look.ablation import without_heads

        model = cast("Model", self)
        network = without_heads(model.network, heads, stack=stack, cross=cross)
        checkpoint = replace(model.checkpoint, network=network)
        return type(model)(checkpoint, model.tokenizer, folder=model.folder, compile=model.compile)

    def meaning(self, word: str, sentences: Sequence[str], *, neighbors: int = 8) -> Meaning:
        """The vectors of a word in several sentences, by layer: in two dimensions, and how similar they are.

        model.meaning("bank", ["The bank of the river.", "A bank with money."]).cosines[-1]
        """
        from regard.look.meaning import meaning

        return meaning(cast("Model", self), word, sentences, neighbors=neighbors)

    def counterfactuals(
        self, text: str, *, masked_model: Model | None = None, words: int = 5, candidates: int = 20
    ) -> Counterfactuals:
        """Replacements of single words that change the answer of a classifier.

        masked_model: a masked language model that proposes words; without one, words with similar embeddings.
        words: how many words are replaced, the most important first; `candidates` are tried for each.
        """
        from regard.look.counterfactuals import counterfactuals

        return counterfactuals(cast("Model", self), text, masked_model=masked_model, words=words, candidates=candidates)
