"""The logit of a word: for a mask, after a text, or in a translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from regard.data.records import TranslateRecord
from regard.errors import InputError
from regard.look.explain.explanation import ExplainedTarget
from regard.look.explain.scorer import Variant, VariantBatch
from regard.look.explain.targets.tags import TokenTarget
from regard.look.explain.targets.target import Target
from regard.look.explain.tokenized import InputSequence, TokenizedText, from_encoding, group_words, token_names
from regard.model.recurrent.networks import RecurrentNetwork
from regard.predict.masked_words import find_masks
from regard.tasks.translate import Translate, special_frame
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.predict.model import Model


def masked_word_target(model: Model, text: str, target: str | None) -> tuple[TokenizedText, Target]:
    """The target for a word in place of the first mask of the text; the most likely word if None."""
    tokenizer = model.require_tokenizer()
    text, _ = find_masks(tokenizer, text)
    encoding = tokenizer.encode(text)
    _check_length(model, len(encoding.ids))
    position = encoding.ids.index(tokenizer.mask or 0)
    tokenized = from_encoding(tokenizer, text, encoding, segments=model.config.segments > 1, protect=[position])
    number = _most_likely(model, tokenized.sequences[0], position) if target is None else _one_token(tokenizer, target)
    word = tokenizer.decode([number], special=True).strip()
    info = ExplainedTarget("masked word", word, f'the word "{word}" for the mask', (position,))
    return tokenized, TokenTarget(info, (number,))


def next_word_target(model: Model, text: str, target: str | None) -> tuple[TokenizedText, Target]:
    """The target for the token after a text; the most likely one if None. A word of several tokens is its first."""
    tokenizer = model.require_tokenizer()
    encoding = _without_end(tokenizer.encode(text))
    limit = model.config.max_tokens
    note = None
    if limit is not None and len(encoding.ids) > limit:
        note = f"The text has {len(encoding.ids)} tokens; the model reads the last {limit}."
        encoding = _last_tokens(encoding, limit)
    tokenized = replace(from_encoding(tokenizer, text, encoding, segments=False), note=note)
    position = len(encoding.ids) - 1
    if target is None:
        number = _most_likely(model, tokenized.sequences[0], position)
    else:
        number = _first_token(tokenizer, text, target)
    word = tokenizer.decode([number], special=True)
    info = ExplainedTarget("next word", word.strip() or word, f'the next word "{word.strip() or word}"', (position,))
    return tokenized, TokenTarget(info, (number,))


def translated_word_target(model: Model, text: str, target: str | None) -> tuple[TokenizedText, Target]:
    """The target for a word of the translation, or its number from 0 on; the first word if None."""
    preprocessing = model.preprocessing()
    tokenizer = preprocessing.tokenizer
    rows = Translate().examples([_record(text)], preprocessing, labeled=False)
    if len(rows) > 1:
        raise InputError(
            f"this text is translated in {len(rows)} parts, and a word is explained within one. Give one sentence."
        )
    source = rows.take([0]).tokens.ids.tolist()
    (candidates,) = model.writer.continuations([source], {"max_tokens": int(rows.by_sequence["max_new_tokens"][0])})
    ids = list(candidates[0].ids)
    out = tokenizer.output_tokenizer
    translation = out.decode_generated(ids)
    spans = _token_spans(out, ids)  # those of special tokens are empty
    words = group_words((translation,), spans, [0] * len(ids))
    if not words:
        raise InputError("the translation of this text has no words, so there is nothing to explain.")
    chosen = _chosen_word([translation[word.start : word.end] for word in words], target)
    positions = words[chosen].tokens  # a decoder predicts its next token, and it starts with one of its own
    first, last = positions[0], positions[-1]
    start = model.writer.special.decoder_start
    assert start is not None
    word_ids = [ids[token] for token in positions]
    decoder_ids = (start, *ids[:last])
    label = translation[words[chosen].start : words[chosen].end]
    info = ExplainedTarget("translated word", label, f'the translated word "{label}" of "{translation}"', positions)
    prefix = translation[: words[chosen].start]
    return _with_prefix(model, text, source, decoder_ids, prefix, spans[:first]), TokenTarget(info, tuple(word_ids))


def _record(text: str) -> TranslateRecord:
    if not text.strip():
        raise InputError("the text is empty. Give it words.")
    return TranslateRecord(text, "")


def _check_length(model: Model, length: int) -> None:
    limit = model.config.max_tokens
    if limit is not None and length > limit:
        raise InputError(
            f"the text has {length} tokens; the maximum of this network is {limit}, and a mask is explained within "
            "one sequence. Give the part of the text around the mask."
        )


@torch.no_grad()
def _most_likely(model: Model, sequence: InputSequence, position: int) -> int:
    variant = Variant(sequence.ids, sequence.segments, None, (position,))
    batch = VariantBatch.of([variant], model.device)
    logits = model.network(batch.tokens, at=batch.positions_BP.flatten()).logits
    return int(logits[0, : model.require_tokenizer().size].argmax())


def _one_token(tokenizer: Tokenizer, word: str) -> int:
    """The token of a word that stands alone."""
    choices = [tokenizer.encode(start + word, special=False).ids for start in ("", " ")]
    single = [ids[0] for ids in choices if len(ids) == 1 and ids[0] != tokenizer.unk]
    if not single:
        raise InputError(f'target "{word}" is not one token of this model, so it cannot stand in place of a mask.')
    return single[0]


def _first_token(tokenizer: Tokenizer, text: str, word: str) -> int:
    """The first token of a word after a text."""
    space = "" if text.endswith((" ", "\n")) or word.startswith(" ") else " "
    before = _without_end(tokenizer.encode(text)).ids
    after = _without_end(tokenizer.encode(text + space + word)).ids
    rest = after[len(before) :] if after[: len(before)] == before else tokenizer.encode(word, special=False).ids
    if not rest:
        raise InputError(f'target "{word}" has no token of this model.')
    return rest[0]


def _without_end(encoding: Encoding) -> Encoding:
    """Without the special tokens at the end, after which no text follows."""
    count = len(encoding.ids)
    while count > 1 and encoding.special[count - 1]:
        count -= 1
    return _slice(encoding, 0, count)


def _last_tokens(encoding: Encoding, count: int) -> Encoding:
    return _slice(encoding, len(encoding.ids) - count, len(encoding.ids))


def _slice(encoding: Encoding, start: int, end: int) -> Encoding:
    some = slice(start, end)
    return Encoding(
        encoding.ids[some],
        encoding.segments[some],
        encoding.offsets[some],
        encoding.word_ids[some],
        encoding.special[some],
        encoding.sequence_ids[some],
    )


def _token_spans(tokenizer: Tokenizer, ids: Sequence[int]) -> list[tuple[int, int]]:
    """The characters of each token in the decoded text."""
    ends = [len(tokenizer.decode_generated(ids[: count + 1])) for count in range(len(ids))]
    ends = [max(ends[: count + 1]) for count in range(len(ends))]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _chosen_word(words: Sequence[str], target: str | None) -> int:
    """The number of a word: given as the word itself or as its number."""
    if target is None:
        return 0
    if target in words:
        return words.index(target)
    if target.isdigit() and int(target) < len(words):
        return int(target)
    raise InputError(
        f'target "{target}" is not a word of the translation "{" ".join(words)}". '
        f"Give one of its words, or a number from 0 to {len(words) - 1}."
    )


def _with_prefix(
    model: Model,
    text: str,
    source: Sequence[int],
    decoder_ids: Sequence[int],
    prefix: str,
    prefix_spans: Sequence[tuple[int, int]],
) -> TokenizedText:
    """The source and the translation so far as one tokenized text. The words so far can be erased in a Transformer."""
    preprocessing = model.preprocessing()
    tokenizer = preprocessing.tokenizer
    skip = len(preprocessing.prefix)
    encoding = tokenizer.encode(preprocessing.prefix + text, special=False)
    before = len(special_frame(tokenizer)[0])
    spans = {before + i: (a - skip, b - skip) for i, (a, b) in enumerate(encoding.offsets) if b > skip}
    source_ids: list[int | None] = [0 if i in spans else None for i in range(len(source))]
    seen = {i + 1 for i, (a, b) in enumerate(prefix_spans) if a < b}
    decoder_part: list[int | None] = [1 if i in seen else None for i in range(len(decoder_ids))]
    offsets = [(max(a, 0), b) for a, b in (spans.get(i, (0, 0)) for i in range(len(source)))]
    offsets += [prefix_spans[i - 1] if part == 1 else (0, 0) for i, part in enumerate(decoder_part)]
    sequence_ids = (*source_ids, *decoder_part)
    keeps_prefix = isinstance(model.network, RecurrentNetwork)
    names = token_names(tokenizer, source) + token_names(tokenizer.output_tokenizer, decoder_ids)
    sequence = InputSequence(tuple(source), None, tuple(range(len(names))), tuple(decoder_ids))
    return TokenizedText(
        texts=(text, prefix),
        tokens=names,
        offsets=tuple(offsets),
        sequence_ids=sequence_ids,
        erasable=tuple(part == 0 or (part == 1 and not keeps_prefix) for part in sequence_ids),
        words=group_words((text, prefix), offsets, sequence_ids),
        sequences=(sequence,),
    )
