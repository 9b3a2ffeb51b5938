"""Unigram, the vocabulary of T5 and ALBERT.

In plain terms, it is learned as follows:
1. Words are counted; the space before a word is part of it, written ▁.
2. The vocabulary starts with all characters and very many frequent substrings. Each token has a probability.
3. The EM algorithm estimates the probabilities: it splits every word into its most likely tokens and counts these.
4. The tokens whose removal lowers the likelihood of the text least are removed. Steps 3 and 4 are repeated until the
   vocabulary has the requested size; single characters are never removed.

A text is split into the sequence of tokens with the highest product of probabilities (Viterbi algorithm).

Kudo, "Subword regularization", 2018; Kudo and Richardson, "SentencePiece", 2018.
"""

from __future__ import annotations

import json
from collections import Counter

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from regard.text.tokenizer import Tokenizer
from regard.text.vocabularies.common import (
    VocabularySettings,
    check_size,
    finish_tokenizer,
    in_id_order,
    limit_characters,
    set_normalizer,
    train,
    within_alphabet,
)

TOKENS = {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}  # as in T5
MAX_CHARACTERS = 1_000_000  # of distinct words; every step of the trainer runs over all of them
SCORE_STEP = 1e-4  # difference between the scores that the trainer gives to characters it did not count


def new_backend(settings: VocabularySettings) -> Backend:
    """The normalizer and pre-tokenizer of T5 with an empty vocabulary."""
    backend = Backend(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    steps = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    set_normalizer(backend, steps, lowercase=settings.lowercase)
    return backend


def learn(backend: Backend, words: Counter[str], settings: VocabularySettings) -> Tokenizer:
    """Learn the vocabulary from counted words. Raises VocabularyTooSmall."""
    covered, alphabet = within_alphabet(words, settings.alphabet)
    specials = in_id_order(TOKENS)
    needed = len(alphabet) + len(specials) + 1  # with a smaller size the trainer returns too many tokens
    check_size(settings, needed, alphabet=len(alphabet), specials=len(specials))
    trainer = trainers.UnigramTrainer(
        vocab_size=settings.size,
        special_tokens=specials,
        initial_alphabet=alphabet,
        unk_token=TOKENS["unk"],
        show_progress=False,
    )
    trained = train(models.Unigram(), trainer, limit_characters(covered, MAX_CHARACTERS))
    scores = json.loads(trained.to_str())["model"]["vocab"]
    backend.model = models.Unigram(reproducible_order(scores, specials), specials.index(TOKENS["unk"]))
    end = TOKENS["eos"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {end}:0", pair=f"$A:0 {end}:0 $B:0 {end}:0", special_tokens=[(end, specials.index(end))]
    )
    return finish_tokenizer(backend, TOKENS)


def reproducible_order(pairs: list[tuple[str, float]], specials: list[str]) -> list[tuple[str, float]]:
    """Tokens and scores, rounded and sorted, so that they do not depend on the hash tables of the trainer.

    Characters that the trainer added without counting them have scores slightly above the lowest, in random order.
    Here they all get the lowest score.
    """
    scores = {token: round(score, 6) for token, score in pairs if token not in specials}
    single_characters = [token for token in scores if len(token) == 1]
    lowest = min(scores.values())
    for token in single_characters:
        if scores[token] < lowest + SCORE_STEP * (len(single_characters) + 1):
            scores[token] = lowest
    return [(token, 0.0) for token in specials] + sorted(scores.items(), key=lambda item: (-item[1], item[0]))
