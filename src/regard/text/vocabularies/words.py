"""A vocabulary of whole words, for toy corpora: each word or punctuation mark is one token, rare ones are unknown."""

from __future__ import annotations

from collections import Counter

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers

from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_files import BERT_TOKENS, bert_backend
from regard.text.vocabularies.common import (
    VocabularySettings,
    check_size,
    finish_tokenizer,
    in_id_order,
    set_normalizer,
)
from regard.text.word_counts import rank


def new_backend(settings: VocabularySettings) -> Backend:
    """A tokenizer that splits a text at spaces and punctuation, with an empty vocabulary."""
    backend = Backend(models.WordLevel({"[UNK]": 0}, unk_token=BERT_TOKENS["unk"]))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(cleanup=False)  # joins words with spaces
    set_normalizer(backend, [normalizers.NFC()], lowercase=settings.lowercase)
    return backend


def learn(backend: Backend, words: Counter[str], settings: VocabularySettings) -> Tokenizer:
    """A vocabulary of the most frequent words, in the order of their frequency. Raises VocabularyTooSmall."""
    specials = in_id_order(BERT_TOKENS)
    check_size(settings, len(specials) + 1, alphabet=1, specials=len(specials))
    names = [word for word, _ in rank(words) if word not in specials][: settings.size - len(specials)]
    vocabulary = {token: number for number, token in enumerate(specials + names)}
    backend.model = models.WordLevel(vocabulary, unk_token=BERT_TOKENS["unk"])
    backend.post_processor = bert_backend(vocabulary, BERT_TOKENS, {}).post_processor
    return finish_tokenizer(backend, BERT_TOKENS)
