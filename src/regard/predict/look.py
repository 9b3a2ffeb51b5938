"""The part of `Model` that looks inside: explanations of answers, predictions of each layer, switched-off heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # the package `look` is above this one: it is imported by the methods
    from regard.look.explain.explanation import Explanation
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
    ) -> Explanation:
        """How much each word of a text contributed to an answer: `.words`, `.token_scores`, `.json()`.

        pair: the second text of a pair; the context of a question; for a sentence encoder the text whose similarity is
            explained.
        method: decomposition, occlusion, integrated_gradients, sequential_integrated_gradients, gradient_x_input,
            attention_rollout, value_weighted_attention, attention or random; the most faithful one that fits the
            network if not given. `regard.look.explain.methods.methods_for(model.network)` lists those that fit.
        target: what is explained: a class; words of the text, or WORDS=TAG, for a tagger; a part of the context for a
            question; a word of the translation or its number; the next word; the word for a mask. By default the
            answer that the model gives.
        steps: points on the path of integrated gradients; as many as are needed if not given.
        faithfulness: also measure how faithful the explanation is on this text.

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
        )
