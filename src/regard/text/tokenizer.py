"""Text to tokens and back, with the place of each token in the text."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import FolderError, InputError, pluralize, shorten
from regard.foreign import file_errors, path_inside
from regard.text.files import ROLES, named_tokens, read_backend, read_settings, tokenizer_kind

TARGET_FOLDER = "target_tokenizer"  # the folder inside a translator's, where the other language has words of its own
# What special tokens are called where no file tells their roles.
USUAL = {
    "cls": ("[CLS]", "<cls>"),
    "sep": ("[SEP]", "<sep>"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "bos": ("<s>", "<|begin_of_text|>", "<bos>"),
    "eos": ("</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>"),
}
HIGHEST = 10_000_000  # id of a token; ten times the largest vocabulary in use
NOT_FROM_TOKENIZERS = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)
SHORT = ("a", "the", "1", ".", "x")


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as tokens. Every field has one entry a token."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]  # code points of the text the token comes from, end exclusive
    word_ids: tuple[int | None, ...]  # number of the word in its text; None for special tokens
    special: tuple[bool, ...]  # put there by the tokenizer, not found in the text
    sequence_ids: tuple[int | None, ...]  # 0 or 1: the text or its pair; None for special tokens

    @classmethod
    def from_backend(cls, found: tokenizers.Encoding) -> Encoding:
        """From the library's own, each field when it is first asked for: offsets and words cost more than tokens."""
        new = object.__new__(cls)
        new.__dict__["_found"] = found
        return new

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_found")
        if name not in _FIELDS or found is None:
            raise AttributeError(f"Encoding has no attribute {name!r}.")
        value = _FIELDS[name](found)
        self.__dict__[name] = value
        return value

    def __len__(self) -> int:
        return len(self.ids)


_FIELDS: dict[str, Callable[[tokenizers.Encoding], tuple[Any, ...]]] = {
    "ids": lambda found: tuple(found.ids),
    "segments": lambda found: tuple(found.type_ids),
    "offsets": lambda found: tuple(found.offsets),
    "word_ids": lambda found: tuple(found.word_ids),
    "special": lambda found: tuple(map(bool, found.special_tokens_mask)),
    "sequence_ids": lambda found: tuple(found.sequence_ids),
}


class Tokenizer:
    """The tokenizer of a model folder. It never cuts a text short and never pads one."""

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        tokens: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        target: Tokenizer | None = None,
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.settings = dict(settings or {})
        self._tokens = dict(tokens or {})
        self.target = target

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizer:
        """From tokenizer.json, or vocab.txt (WordPiece), or vocab.json and merges.txt (byte-level pairs)."""
        folder = Path(folder)
        other = cls._load_one(path_inside(folder, TARGET_FOLDER)) if cls.exists(folder / TARGET_FOLDER) else None
        found = cls._load_one(folder)
        found.target = other
        return found

    @classmethod
    def _load_one(cls, folder: Path) -> Tokenizer:
        """The tokenizer of the folder itself; no file of it may be a link that leads out of the folder."""
        settings = read_settings(folder)
        backend, tokens = read_backend(folder, settings)
        return cls(backend, tokens=tokens | named_tokens(settings), settings=settings)

    @staticmethod
    def exists(folder: str | Path) -> bool:
        """Whether the folder holds files that `load` reads."""
        return tokenizer_kind(Path(folder)) is not None

    @property
    def output_tokenizer(self) -> Tokenizer:
        """What is written with: that of the other language, where it has a vocabulary of its own."""
        return self.target or self

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        """The tokens of a text or a pair; `special=False` leaves out what the tokenizer would put around it."""
        _check_text(text, "the text")
        if pair is not None:
            _check_text(pair, "the second text")
        try:
            return Encoding.from_backend(self.backend.encode(text, pair, add_special_tokens=special))
        except NOT_FROM_TOKENIZERS:
            raise
        except BaseException as error:  # bare, from the library, or a panic
            raise _not_encoded("the text" if pair is None else "the pair of texts", text, error) from error

    def encode_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, special: bool = True
    ) -> list[Encoding]:
        """One encoding a text, in order."""
        return [Encoding.from_backend(found) for found in self._batch(self.backend.encode_batch, texts, pairs, special)]

    def ids_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, special: bool = True
    ) -> list[list[int]]:
        """Only the ids, one list a text: the quickest way, which keeps no offsets."""
        return [found.ids for found in self._batch(self.backend.encode_batch_fast, texts, pairs, special)]

    def _batch(
        self,
        encode: Callable[..., list[tokenizers.Encoding]],
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        special: bool,
    ) -> list[tokenizers.Encoding]:
        """What the library makes of texts that were checked."""
        _check_texts(texts, "text")
        rows: list[Any] = list(texts)
        if pairs is not None:
            _check_texts(pairs, "second text")
            if len(texts) != len(pairs):
                raise InputError(
                    f"{pluralize(len(texts), 'text')} but {pluralize(len(pairs), 'second text')}; give one for each."
                )
            rows = list(zip(texts, pairs, strict=True))
        try:
            return encode(rows, add_special_tokens=special)
        except NOT_FROM_TOKENIZERS:
            raise
        except BaseException as error:  # bare, from the library, or a panic, and it does not say for which text
            self._name_the_culprit(texts, pairs)
            raise _not_encoded("a text", texts[0], error) from error

    def _name_the_culprit(self, texts: Sequence[str], pairs: Sequence[str] | None) -> None:
        for number, text in enumerate(texts):
            try:
                self.backend.encode(text, None if pairs is None else pairs[number])
            except NOT_FROM_TOKENIZERS:
                raise
            except BaseException as error:
                raise _not_encoded(f"{'text' if pairs is None else 'pair'} {number}", text, error) from error

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of the tokens; special tokens are left out unless asked for."""
        for place, number in enumerate(ids):
            if number < 0 or self.backend.id_to_token(number) is None:
                raise InputError(
                    f"token {place} has the id {number}, but this tokenizer's vocabulary has {self.size} tokens. "
                    "Use the tokenizer that belongs to the model."
                )
        return self._decoded(list(ids), skip_special_tokens=not special)

    def decode_generated(self, ids: Sequence[int]) -> str:
        """The text of what a network wrote. It may have more words than its tokenizer, rows that only fill up its
        matrix: those are no text, and the library leaves them out."""
        return self._decoded(list(ids))

    def _decoded(self, ids: list[int], **how: bool) -> str:
        try:
            return self.backend.decode(ids, **how)
        except NOT_FROM_TOKENIZERS:
            raise
        except BaseException as error:  # bare, from the library, or a panic
            raise InputError(
                f"the decoder of this tokenizer failed: {shorten(str(error))}. "
                'Compare "decoder" in tokenizer.json with that of the original model.'
            ) from error

    @property
    def kind(self) -> str:
        """How words are cut: wordpiece, bpe, unigram or wordlevel."""
        return type(self.backend.model).__name__.lower()

    @property
    def size(self) -> int:
        """How many tokens there are, added ones included."""
        return self.backend.get_vocab_size()

    @functools.cached_property
    def special(self) -> dict[str, int]:
        """The id of each special token this tokenizer has, by role."""
        own = {token.content for token in self.backend.get_added_tokens_decoder().values() if token.special}
        found = {}
        for role in ROLES:
            choices = [self._tokens[role]] if role in self._tokens else [name for name in USUAL[role] if name in own]
            number = self.backend.token_to_id(choices[0]) if choices else None
            if number is not None:
                found[role] = number
        return found

    @property
    def cls(self) -> int | None:
        return self.special.get("cls")

    @property
    def sep(self) -> int | None:
        return self.special.get("sep")

    @property
    def mask(self) -> int | None:
        return self.special.get("mask")

    @property
    def pad(self) -> int | None:
        return self.special.get("pad")

    @property
    def unk(self) -> int | None:
        return self.special.get("unk")

    @property
    def bos(self) -> int | None:
        return self.special.get("bos")

    @property
    def eos(self) -> int | None:
        return self.special.get("eos")

    @functools.cached_property
    def surrounding_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids that stand before and after a single text, for windows that are cut from a longer one."""
        found = self.encode(self.short_text)
        inside = [place for place, special in enumerate(found.special) if not special]
        return found.ids[: inside[0]], found.ids[inside[-1] + 1 :]

    @functools.cached_property
    def short_text(self) -> str:
        """A short text that becomes at least one token: a usual one, or a word of the vocabulary."""
        for text in (*SHORT, *self.backend.get_vocab()):
            try:
                if self.ids_batch([text], special=False)[0]:
                    return text
            except InputError:  # not in a vocabulary that has no token for the unknown
                continue
        raise InputError("no word of this tokenizer's vocabulary becomes a token, so it cannot be used.")

    def to_json(self, *, pretty: bool = False) -> str:
        """The content of tokenizer.json."""
        with file_errors("the tokenizer"):
            highest = max(self.backend.get_vocab().values(), default=0)
            if highest > HIGHEST:  # the library goes through all numbers up to it
                raise InputError(f"the tokenizer has a token with the id {highest:,}; expected at most {HIGHEST:,}.")
            return self.backend.to_str(pretty=pretty)

    def without_special_tokens(self) -> Tokenizer:
        """The same words with nothing put around a text."""
        with file_errors("the tokenizer"):
            backend = tokenizers.Tokenizer.from_str(self.to_json())
        backend.post_processor = None
        return Tokenizer(backend, tokens=self._tokens, settings=self.settings)

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json and tokenizer_config.json, which transformers' AutoTokenizer opens; `target` beside."""
        folder = Path(folder)
        if not folder.is_dir():
            raise FolderError(f"{folder} is not a folder. Make it first: the tokenizer is written into it.")
        settings = {name: value for name, value in self.settings.items() if name not in ("auto_map", "name_or_path")}
        if "auto_map" in self.settings or not settings.get("tokenizer_class"):
            settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        for role in self.special:
            token = self.backend.id_to_token(self.special[role])
            settings.setdefault(f"{role}_token", token)
        (folder / "tokenizer.json").write_text(self.to_json(pretty=True), encoding="utf-8")
        content = json.dumps(settings, indent=2, ensure_ascii=False)
        (folder / "tokenizer_config.json").write_text(content + "\n", encoding="utf-8")
        if self.target is not None:
            (folder / TARGET_FOLDER).mkdir(exist_ok=True)
            self.target.save(folder / TARGET_FOLDER)


def _not_encoded(which: str, text: str, error: BaseException) -> InputError:
    start = shorten(text, 40)
    if not isinstance(error, Exception):
        return InputError(
            f'the tokenizer failed at {which} ("{start}"): {shorten(str(error))}. '
            "Its tokenizer.json is damaged: copy it again from where the model came from."
        )
    return InputError(
        f'{which} ("{start}") has something that is not in the vocabulary, and the vocabulary has no token for the '
        f'unknown: {shorten(str(error))}. Name one that it holds as "unk_token" (for Unigram "unk_id") under '
        '"model" in '
        "tokenizer.json, or learn a vocabulary that has one with: regard tokenizer FILE --out DIR"
    )


def _check_texts(texts: Sequence[str], what: str) -> None:
    if isinstance(texts, str | bytes):
        raise InputError(f"a list of texts was expected, but one {type(texts).__name__} was given. Put it into a list.")
    for number, text in enumerate(texts):
        _check_text(text, f"{what} {number}")


def _check_text(text: object, which: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"{which} is of type {type(text).__name__}, but a string was expected.{_mend_type(text)}")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{which} has half of a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start}, "
            "which no encoding can hold. Mend it with: "
            'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
        ) from error


def _mend_type(text: object) -> str:
    if isinstance(text, bytes):
        return ' Decode it first: text.decode("utf-8").'
    if text is None or isinstance(text, float):
        return " Leave the empty rows out, or replace them with an empty string."
    return ""
