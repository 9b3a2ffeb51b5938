"""A vocabulary of single characters: each character of a text, including spaces, is one token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_files import BERT_TOKENS, bert_backend
from regard.text.vocabularies.common import (
    NoText,
    VocabularySettings,
    check_size,
    finish_tokenizer,
    in_id_order,
    set_normalizer,
)
from regard.text.word_counts import rank


def new_backend(settings: VocabularySettings) -> Backend:
    """A tokenizer that splits a text into its characters, with an empty vocabulary."""
    backend = Backend(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.decoder = decoders.Fuse()
    set_normalizer(backend, [], lowercase=settings.lowercase)
    return backend


def learn(texts: Iterable[str], settings: VocabularySettings) -> Tokenizer:
    """A vocabulary of the most frequent characters. Raises NoText and VocabularyTooSmall."""
    counts = _count(texts, lowercase=settings.lowercase)
    if not any(not character.isspace() for character in counts):
        raise NoText
    specials = in_id_order(BERT_TOKENS)
    check_size(settings, len(specials) + 1, alphabet=1, specials=len(specials))
    limit = min(settings.alphabet, settings.size - len(specials))
    characters = sorted(character for character, _ in rank(counts)[:limit])
    vocabulary = {token: number for number, token in enumerate(specials + characters)}
    backend = new_backend(settings)
    backend.model = models.WordLevel(vocabulary, unk_token=BERT_TOKENS["unk"])
    backend.post_processor = bert_backend(vocabulary, BERT_TOKENS, {}).post_processor
    return finish_tokenizer(backend, BERT_TOKENS)


def _count(texts: Iterable[str], *, lowercase: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    if not lowercase:
        return counts
    lower_counts: Counter[str] = Counter()
    for character, count in counts.items():
        for lower in normalizers.Lowercase().normalize_str(character):
            lower_counts[lower] += count
    return lower_counts
