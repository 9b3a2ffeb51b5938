"""Byte-level BPE (byte pair encoding), the vocabulary of GPT-2 and RoBERTa.

In plain terms, it is learned as follows:
1. Texts are split into words, each with the space before it, and the words into bytes.
2. The vocabulary starts with the 256 bytes.
3. The most frequent pair of neighboring tokens is merged into a new token, until the vocabulary has the requested size.

A text is tokenized by applying the merges in the order in which they were learned. Every text consists of bytes, so no
token is ever unknown.

Sennrich et al., "Neural machine translation of rare words with subword units", 2016; on bytes: Radford et al.,
"Language models are unsupervised multitask learners" (GPT-2), 2019.
"""

from __future__ import annotations

from collections import Counter

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_files import BERT_TOKENS
from regard.text.vocabularies.common import (
    VocabularySettings,
    add_special_tokens,
    check_size,
    set_normalizer,
    train,
)
from regard.text.word_counts import rank

END_OF_TEXT = "<|endoftext|>"
# Special tokens by role, in the order of their ids, for each model family.
SPECIAL_TOKENS = {
    "gpt2": {"bos": END_OF_TEXT, "eos": END_OF_TEXT},
    "roberta": {
        "bos": "<s>",
        "cls": "<s>",
        "pad": "<pad>",
        "eos": "</s>",
        "sep": "</s>",
        "unk": "<unk>",
        "mask": "<mask>",
    },
    "t5": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "bert": {role: BERT_TOKENS[role] for role in ("pad", "unk", "cls", "sep", "mask")},
}


def new_backend(settings: VocabularySettings) -> Backend:
    """GPT-2's pre-tokenizer with an empty vocabulary."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    set_normalizer(backend, [], lowercase=settings.lowercase)
    return backend


def learn(backend: Backend, words: Counter[str], settings: VocabularySettings) -> Tokenizer:
    """Learn the vocabulary from counted words. Raises VocabularyTooSmall."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = SPECIAL_TOKENS[settings.special_tokens]
    specials = list(dict.fromkeys(tokens.values()))
    check_size(settings, len(alphabet) + len(specials), alphabet=len(alphabet), specials=len(specials))
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size,
        min_frequency=2,
        special_tokens=specials,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    backend.model = train(models.BPE(), trainer, rank(words)).model
    if settings.special_tokens != "gpt2":
        backend.post_processor = _post_processor(settings.special_tokens, tokens, specials)
    add_special_tokens(backend, specials)
    return Tokenizer(backend, tokens=tokens)


def _post_processor(name: str, tokens: dict[str, str], specials: list[str]) -> processors.PostProcessor:
    """Puts special tokens around a text and between two texts, as in RoBERTa or BERT; after it, as in T5."""
    if name == "t5":
        end = tokens["eos"]
        return processors.TemplateProcessing(
            single=f"$A:0 {end}:0", pair=f"$A:0 {end}:0 $B:0 {end}:0", special_tokens=[(end, specials.index(end))]
        )
    cls = (tokens["cls"], specials.index(tokens["cls"]))
    sep = (tokens["sep"], specials.index(tokens["sep"]))
    if name == "roberta":
        return processors.RobertaProcessing(sep, cls, trim_offsets=False, add_prefix_space=False)
    return processors.TemplateProcessing(
        single=f"{cls[0]}:0 $A:0 {sep[0]}:0",
        pair=f"{cls[0]}:0 $A:0 {sep[0]}:0 $B:1 {sep[0]}:1",
        special_tokens=[cls, sep],
    )
