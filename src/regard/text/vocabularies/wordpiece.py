"""WordPiece, the vocabulary of BERT.

In plain terms, it is learned as follows:
1. Words are split at spaces and punctuation, and counted.
2. The vocabulary starts with all characters. A character inside a word is a separate token, written with ##.
3. The most frequent pair of neighboring tokens becomes a new token, until the vocabulary has the requested size.

A word is then tokenized greedily: the longest token that it starts with, then the longest ## token that the rest starts
with, and so on. A word with a character outside the vocabulary becomes [UNK].

Schuster and Nakajima, "Japanese and Korean voice search", 2012; Devlin et al., "BERT", 2019. The original merges the
pair that raises the likelihood of the text most; the `tokenizers` library, and so this module, merges by frequency.
"""

from __future__ import annotations

from collections import Counter

from tokenizers import Tokenizer as Backend
from tokenizers import models, trainers

from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_files import BERT_TOKENS, bert_backend
from regard.text.vocabularies.common import (
    VocabularySettings,
    check_size,
    finish_tokenizer,
    in_id_order,
    train,
    within_alphabet,
)


def new_backend(settings: VocabularySettings) -> Backend:
    """BERT's normalizer and pre-tokenizer with an empty vocabulary."""
    vocabulary = {token: number for number, token in enumerate(in_id_order(BERT_TOKENS))}
    return bert_backend(vocabulary, BERT_TOKENS, {"do_lower_case": settings.lowercase})


def learn(backend: Backend, words: Counter[str], settings: VocabularySettings) -> Tokenizer:
    """Learn the vocabulary from counted words. Raises VocabularyTooSmall."""
    covered, alphabet = within_alphabet(words, settings.alphabet)
    inside = sorted({character for word, _ in covered for character in word[1:]})
    specials = in_id_order(BERT_TOKENS)
    # The characters inside words are passed as special tokens. Otherwise their order, and with it the choice between
    # pairs of equal frequency, would be that of a hash table.
    first = specials + [f"##{character}" for character in inside]
    check_size(settings, len(first) + len(alphabet), alphabet=len(alphabet), specials=len(specials))
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.size, min_frequency=2, special_tokens=first, initial_alphabet=alphabet, show_progress=False
    )
    backend.model = train(models.WordPiece(unk_token=BERT_TOKENS["unk"]), trainer, covered).model
    return finish_tokenizer(backend, BERT_TOKENS)
