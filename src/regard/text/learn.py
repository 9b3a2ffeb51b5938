"""Learning a vocabulary: WordPiece, byte-level pairs, Unigram, or plain characters.

Words are counted first, in bounded memory (`counts`); the trainers of the `tokenizers` library then learn from the
counts. They take no counts, only text, and hold every distinct word of it; so each word is played to them as often as
it occurs, scaled down past `PLAYED` words. The same text gives the same vocabulary, to the last id: nothing is drawn
at random, and what depends on the order of a hash table over there is put in order here.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from regard.errors import InputError, did_you_mean, pluralize, setting
from regard.progress import OnProgress
from regard.text.counts import WordCounter, characters, ranked, scaled
from regard.text.files import BERT_TOKENS, bert_backend
from regard.text.stream import read_chunks, split_chunks
from regard.text.tokenizer import Tokenizer

KINDS = ("wordpiece", "bpe", "unigram", "char")
END = "<|endoftext|>"
GPT2_TOKENS = {"bos": END, "eos": END}
T5_TOKENS = {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
ROBERTA_TOKENS = {
    "bos": "<s>",
    "cls": "<s>",
    "pad": "<pad>",
    "eos": "</s>",
    "sep": "</s>",
    "unk": "<unk>",
    "mask": "<mask>",
}
# Special tokens of a byte-level vocabulary, in the order of their ids, by the model whose tokens they are.
BYTE_LEVEL_TOKENS = {
    "gpt2": GPT2_TOKENS,
    "roberta": ROBERTA_TOKENS,
    "bert": {role: BERT_TOKENS[role] for role in ("pad", "unk", "cls", "sep", "mask")},
}

PLAYED = 10_000_000  # words played to a trainer
AT_ONCE = 1000  # times a word is written into one text for it
CHARACTERS = 12_000_000  # of distinct words that a trainer holds: about a gigabyte
UNIGRAM_CHARACTERS = 1_000_000  # as many for Unigram, whose many steps each run over all words
STEP = 1e-4  # what the Unigram trainer lays between the scores of characters that it kept without having counted them


@dataclass(frozen=True)
class VocabularySettings:
    """What is learned, from which words."""

    kind: str
    size: int
    lowercase: bool
    alphabet: int  # characters that are kept, at most
    max_words: int
    special_tokens: str = "gpt2"  # of byte-level pairs


def train_tokenizer(
    files: Sequence[str | Path],
    *,
    kind: str = "wordpiece",
    size: int = 16_000,
    lowercase: bool | None = None,
    alphabet: int = 1000,
    max_words: int = 1_000_000,
    encoding: str | None = None,
    special_tokens: str | None = None,
    progress: OnProgress | None = None,
) -> Tokenizer:
    """A tokenizer learned from text files (plain, .gz or .xz) of any size.

    `encoding` is that of the files; recognized from their bytes if not given.

    `lowercase` is on for WordPiece and off for the others unless told. `alphabet` bounds the characters that get a
    piece of their own (byte-level pairs need none). `special_tokens` of byte-level pairs are those of "gpt2" (the
    default), "roberta" or "bert" (for ModernBERT); the latter two have a mask token. `progress` is called with
    the bytes done and the bytes in all.
    """
    plan = _plan(kind, size, lowercase, alphabet, max_words, special_tokens)
    try:
        return _learned(read_chunks(files, encoding=encoding, progress=progress), plan)
    except _NoText:
        names = ", ".join(map(str, files if not isinstance(files, str | Path) else [files]))
        raise InputError(f"{names}: there is no text to learn from. Give a file with words in it.") from None


def train_tokenizer_from_texts(
    texts: Iterable[str],
    *,
    kind: str = "wordpiece",
    size: int = 16_000,
    lowercase: bool | None = None,
    alphabet: int = 1000,
    max_words: int = 1_000_000,
    special_tokens: str | None = None,
) -> Tokenizer:
    """As `learn`, from texts that come one after another."""
    plan = _plan(kind, size, lowercase, alphabet, max_words, special_tokens)
    try:
        return _learned((piece for text in texts for piece in split_chunks(iter([text]))), plan)
    except _NoText:
        raise InputError("there is no text to learn from. Give at least one text with words in it.") from None


class VocabularyTooSmall(InputError):
    """A vocabulary has no room for the characters of the text: it needs so many pieces."""

    def __init__(self, said: str, needed: int) -> None:
        super().__init__(said)
        self.needed = needed


class _NoText(Exception):
    """Whoever knows where the text came from says so."""


def _plan(
    kind: str, size: int, lowercase: bool | None, alphabet: int, max_words: int, special_tokens: str | None = None
) -> VocabularySettings:
    if kind not in KINDS:
        raise InputError(f'{setting("kind")}: "{kind}" is not a kind of vocabulary.{did_you_mean(kind, KINDS)}')
    if special_tokens is not None and kind != "bpe":
        raise InputError(
            f"special tokens can be chosen for bpe only; {kind} has its own. Leave {setting('special_tokens')} out."
        )
    if special_tokens is not None and special_tokens not in BYTE_LEVEL_TOKENS:
        raise InputError(
            f'special tokens "{special_tokens}" are not known.{did_you_mean(special_tokens, BYTE_LEVEL_TOKENS)}'
        )
    for name, value in (("size", size), ("alphabet", alphabet), ("max_words", max_words)):
        if value < 1:
            raise InputError(f"{setting(name)} is {value}, but at least 1 was expected.")
    lower = kind == "wordpiece" if lowercase is None else lowercase
    return VocabularySettings(kind, size, lower, alphabet, max_words, special_tokens or "gpt2")


def _learned(pieces: Iterator[str], plan: VocabularySettings) -> Tokenizer:
    if plan.kind == "char":
        return _learned_characters(pieces, plan)
    shell = _shell(plan)
    assert shell.pre_tokenizer is not None
    counter = WordCounter(shell.normalizer, shell.pre_tokenizer, blanks=plan.kind == "bpe", max_words=plan.max_words)
    blank = True
    for piece in pieces:
        blank = blank and piece.isspace()
        counter.add(piece)
    counter.flush()
    if blank or not counter.words:
        raise _NoText
    if counter.forgotten:
        warnings.warn(
            f"more than {plan.max_words:,} distinct words: the rarest were forgotten on the way, "
            f"{counter.forgotten / counter.seen:.1%} of the text. Raise max_words to keep them; it costs memory.",
            stacklevel=3,
        )
    ways = {"wordpiece": _word_piece, "bpe": _byte_pairs, "unigram": _unigram}
    learned = ways[plan.kind](shell, counter.words, plan)
    if learned.size < plan.size:
        warnings.warn(
            f"the text gives {pluralize(learned.size, 'piece')}, not the {plan.size:,} asked for. "
            "Give more text, or ask for fewer.",
            stacklevel=3,
        )
    return learned


# The parts of each kind


def _shell(plan: VocabularySettings) -> Backend:
    """A tokenizer with the normaliser and pre-tokenizer of its kind, and a model that has learned nothing."""
    if plan.kind == "wordpiece":
        vocabulary = {token: number for number, token in enumerate(_specials(BERT_TOKENS))}
        return bert_backend(vocabulary, BERT_TOKENS, {"do_lower_case": plan.lowercase})
    if plan.kind == "bpe":
        shell = Backend(models.BPE())
        shell.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        shell.decoder = decoders.ByteLevel()
        shell.post_processor = processors.ByteLevel(trim_offsets=False)
        steps: list[normalizers.Normalizer] = []
    elif plan.kind == "unigram":
        shell = Backend(models.Unigram())
        shell.pre_tokenizer = pre_tokenizers.Metaspace()
        shell.decoder = decoders.Metaspace()
        steps = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    else:
        shell = Backend(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        shell.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        shell.decoder = decoders.Fuse()
        steps = []
    if plan.lowercase:
        steps.append(normalizers.Lowercase())
    if steps:
        shell.normalizer = normalizers.Sequence(steps) if len(steps) > 1 else steps[0]
    return shell


def _specials(tokens: dict[str, str]) -> list[str]:
    """In the order of their ids: padding is 0 where there is some."""
    order = ("pad", "eos", "unk", "cls", "sep", "mask", "bos")
    return list(dict.fromkeys(tokens[role] for role in order if role in tokens))


def _finished(shell: Backend, tokens: dict[str, str]) -> Tokenizer:
    shell.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in _specials(tokens)])
    return Tokenizer(shell, tokens=tokens)


# Training


def _played(words: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Each word as often as it was counted, a few hundred at a time, with a line break between (no word has one)."""
    for word, count in words:
        whole, rest = divmod(count, AT_ONCE)
        if whole:
            text = "\n".join([word] * AT_ONCE)
            for _ in range(whole):
                yield text
        if rest:
            yield "\n".join([word] * rest)


def _train(model: models.Model, trainer: trainers.Trainer, words: list[tuple[str, int]]) -> Backend:
    student = Backend(model)
    student.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("\n")
    words = _up_to(words, CHARACTERS)
    total = sum(count for _, count in words)
    student.train_from_iterator(_played(scaled(words, total, PLAYED)), trainer)
    return student


def _word_piece(shell: Backend, words: Counter[str], plan: VocabularySettings) -> Tokenizer:
    kept, alphabet = _within_alphabet(words, plan)
    inside = sorted({character for word, _ in kept for character in word[1:]})
    specials = _specials(BERT_TOKENS)
    # The pieces inside words are given as special tokens, for otherwise their order, and with it every choice
    # between equal pairs, would be that of a hash table.
    first = specials + [f"##{character}" for character in inside]
    _check_room(plan, len(first) + len(alphabet), len(alphabet), len(first) - len(inside))
    trainer = trainers.WordPieceTrainer(
        vocab_size=plan.size, min_frequency=2, special_tokens=first, initial_alphabet=alphabet, show_progress=False
    )
    shell.model = _train(models.WordPiece(unk_token=BERT_TOKENS["unk"]), trainer, kept).model
    return _finished(shell, BERT_TOKENS)


def _byte_pairs(shell: Backend, words: Counter[str], plan: VocabularySettings) -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = BYTE_LEVEL_TOKENS[plan.special_tokens]
    specials = list(dict.fromkeys(tokens.values()))
    _check_room(plan, len(alphabet) + len(specials), len(alphabet), len(specials))
    trainer = trainers.BpeTrainer(
        vocab_size=plan.size, min_frequency=2, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    shell.model = _train(models.BPE(), trainer, ranked(words)).model
    if "cls" in tokens:
        shell.post_processor = _around_byte_level(plan.special_tokens, tokens, specials)
    shell.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in specials])
    return Tokenizer(shell, tokens=tokens)


def _around_byte_level(name: str, tokens: dict[str, str], specials: list[str]) -> processors.PostProcessor:
    """What stands around a text, and between two, as in RoBERTa or as in BERT."""
    cls, sep = ((tokens[role], specials.index(tokens[role])) for role in ("cls", "sep"))
    if name == "roberta":
        return processors.RobertaProcessing(sep, cls, trim_offsets=False, add_prefix_space=False)
    single, pair = f"{cls[0]}:0 $A:0 {sep[0]}:0", f"{cls[0]}:0 $A:0 {sep[0]}:0 $B:1 {sep[0]}:1"
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[cls, sep])


def _unigram(shell: Backend, words: Counter[str], plan: VocabularySettings) -> Tokenizer:
    kept, alphabet = _within_alphabet(words, plan)
    specials = _specials(T5_TOKENS)
    _check_room(plan, len(alphabet) + len(specials) + 1, len(alphabet), len(specials))  # fewer, and it gives too many
    trainer = trainers.UnigramTrainer(
        vocab_size=plan.size,
        special_tokens=specials,
        initial_alphabet=alphabet,
        unk_token=T5_TOKENS["unk"],
        show_progress=False,
    )
    student = _train(models.Unigram(), trainer, _up_to(kept, UNIGRAM_CHARACTERS))
    pieces = json.loads(student.to_str())["model"]["vocab"]
    shell.model = models.Unigram(_in_order(pieces, specials), specials.index(T5_TOKENS["unk"]))
    end = T5_TOKENS["eos"]
    shell.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {end}:0", pair=f"$A:0 {end}:0 $B:0 {end}:0", special_tokens=[(end, specials.index(end))]
    )
    return _finished(shell, T5_TOKENS)


def _up_to(words: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """The first words, with at most that many characters together."""
    ends = itertools.accumulate(len(word) for word, _ in words)
    return [pair for pair, end in zip(words, ends, strict=True) if end <= most]


def _in_order(pieces: list[tuple[str, float]], specials: list[str]) -> list[tuple[str, float]]:
    """Pieces and scores without the traces of the trainer's hash tables: the last bits, and the order of the rest.

    Characters that the trainer kept for completeness have scores a little above the lowest, in no order; here they
    all get the lowest.
    """
    scores = {piece: round(score, 6) for piece, score in pieces if piece not in specials}
    single = [piece for piece in scores if len(piece) == 1]
    lowest = min(scores.values())
    for piece in single:
        if scores[piece] < lowest + STEP * (len(single) + 1):
            scores[piece] = lowest
    return [(token, 0.0) for token in specials] + sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _within_alphabet(words: Counter[str], plan: VocabularySettings) -> tuple[list[tuple[str, int]], list[str]]:
    """The words made of the most frequent characters, ranked, and these characters."""
    kept = {character for character, _ in ranked(characters(words))[: plan.alphabet]}
    inside = [(word, count) for word, count in ranked(words) if kept.issuperset(word)]
    return inside, sorted(kept)


def _check_room(plan: VocabularySettings, needed: int, alphabet: int, specials: int) -> None:
    if plan.size < needed:
        inside = f", {needed - alphabet - specials} of them again inside words" if plan.kind == "wordpiece" else ""
        what = "bytes" if plan.kind == "bpe" else "characters"
        fix = "" if plan.kind == "bpe" else ", or keep fewer characters with alphabet"
        raise VocabularyTooSmall(
            f"size {plan.size} is too small for {specials} special tokens and {alphabet} {what}{inside}. "
            f"Give a size of at least {needed}, better several times as much{fix}.",
            needed,
        )


# Characters


def _learned_characters(pieces: Iterator[str], plan: VocabularySettings) -> Tokenizer:
    shell, found = _shell(plan), Counter[str]()
    for piece in pieces:
        found.update(piece)
    if plan.lowercase:
        lower: Counter[str] = Counter()
        for character, count in found.items():
            for part in normalizers.Lowercase().normalize_str(character):
                lower[part] += count
        found = lower
    if not any(not character.isspace() for character in found):
        raise _NoText
    specials = _specials(BERT_TOKENS)
    _check_room(plan, len(specials) + 1, 1, len(specials))
    kept = sorted(character for character, _ in ranked(found)[: min(plan.alphabet, plan.size - len(specials))])
    vocabulary = {token: number for number, token in enumerate(specials + kept)}
    shell.model = models.WordLevel(vocabulary, unk_token=BERT_TOKENS["unk"])
    shell.post_processor = bert_backend(vocabulary, BERT_TOKENS, {}).post_processor
    return _finished(shell, BERT_TOKENS)
