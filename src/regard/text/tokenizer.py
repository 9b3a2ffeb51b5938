"""Text to tokens and back, with the position of each token in the text."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import FolderError, InputError, pluralize, shorten
from regard.foreign import file_errors, path_inside
from regard.text.check_texts import check_text, check_texts, encoding_error
from regard.text.encoding import Encoding
from regard.text.features.encoding import FILE as FEATURES
from regard.text.features.encoding import FeatureBackend
from regard.text.flat_tokens import FlatTokens, flat_encodings
from regard.text.tokenizer_files import ROLES, named_tokens, read_backend, read_settings, tokenizer_kind
from regard.text.word_cache import MAX_CORES, WordCache, cpu_count

TARGET_FOLDER = "target_tokenizer"  # subfolder of a translation model whose target language has its own tokenizer
# Common names of special tokens, for tokenizer files that do not name their roles.
COMMON_NAMES = {
    "cls": ("[CLS]", "<cls>"),
    "sep": ("[SEP]", "<sep>"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "bos": ("<s>", "<|begin_of_text|>", "<bos>"),
    "eos": ("</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>"),
}
MAX_ID = 10_000_000  # ten times the size of the largest vocabularies
NOT_FROM_TOKENIZERS = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)
FEW_CHARACTERS = 4096  # below which texts are not worth a table of their words
SHORT_TEXTS = ("a", "the", "1", ".", "x")


class Tokenizer:
    """The tokenizer of a model folder. It never truncates and never pads.

    tokenizer = Tokenizer.load("runs/reviews")
    encoding = tokenizer.encode("The soup was warm.")
    tokenizer.decode(encoding.ids)

    `target` is the tokenizer of the target language, for a translation model with two vocabularies.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer | FeatureBackend,
        *,
        tokens: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        target: Tokenizer | None = None,
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend: Any = backend
        self.settings = dict(settings or {})
        self._tokens = dict(tokens or {})
        self.target = target

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizer:
        """Load tokenizer.json, or vocab.txt (WordPiece), or vocab.json and merges.txt (byte-level BPE).

        Raises FolderError if the folder has none of them, or if a file is damaged.
        """
        folder = Path(folder)
        target = cls._load_one(path_inside(folder, TARGET_FOLDER)) if cls.exists(folder / TARGET_FOLDER) else None
        tokenizer = cls._load_one(folder)
        tokenizer.target = target
        return tokenizer

    @classmethod
    def _load_one(cls, folder: Path) -> Tokenizer:
        """Load the tokenizer of the folder itself. Links that lead out of the folder are refused."""
        settings = read_settings(folder)
        backend, tokens = read_backend(folder, settings)
        return cls(backend, tokens=tokens | named_tokens(settings), settings=settings)

    @staticmethod
    def exists(folder: str | Path) -> bool:
        """True if the folder has files that `load` reads."""
        return tokenizer_kind(Path(folder)) is not None

    @property
    def output_tokenizer(self) -> Tokenizer:
        """The tokenizer of generated text: that of the target language, if it has its own, else this one."""
        return self.target or self

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        """The tokens of a text or a pair of texts; `special=False` omits the special tokens around them."""
        check_text(text, "the text")
        if pair is not None:
            check_text(pair, "the second text")
        try:
            return Encoding.from_backend(self.backend.encode(text, pair, add_special_tokens=special))
        except NOT_FROM_TOKENIZERS:
            raise
        except BaseException as error:  # a plain Exception or a panic of the library
            raise encoding_error("the text" if pair is None else "the pair of texts", text, error) from error

    def encode_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, special: bool = True
    ) -> list[Encoding]:
        """One encoding per text, in order."""
        return [
            Encoding.from_backend(source) for source in self._batch(self.backend.encode_batch, texts, pairs, special)
        ]

    def ids_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, special: bool = True
    ) -> list[list[int]]:
        """Only the token ids, one list per text: faster than `encode_batch`, without offsets."""
        return [source.ids for source in self._batch(self.backend.encode_batch_fast, texts, pairs, special)]

    def flat_batch(self, texts: Sequence[str], *, offsets: bool = False) -> FlatTokens:
        """The tokens of all texts as flat arrays, without special tokens: the fastest way for many texts.

        offsets: also the position of each token in its text; without it they may be missing.
        """
        encode = self.backend.encode_batch if offsets else self.backend.encode_batch_fast

        def encode_plain(texts: Sequence[str]) -> FlatTokens:
            return flat_encodings(self._batch(encode, texts, None, special=False), offsets=offsets)

        check_texts(texts, "text")
        table = self._word_cache
        if table is None or sum(map(len, texts)) < FEW_CHARACTERS:
            return encode_plain(texts)
        return table.encode(texts, encode_plain)

    @functools.cached_property
    def _word_cache(self) -> WordCache | None:
        fits = cpu_count() <= MAX_CORES and WordCache.fits(self.backend)
        return WordCache(self.backend) if fits else None

    def _batch(
        self,
        encode: Callable[..., list[tokenizers.Encoding]],
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        special: bool,
    ) -> list[tokenizers.Encoding]:
        """Check the texts and encode them with the library."""
        check_texts(texts, "text")
        rows: list[Any] = list(texts)
        if pairs is not None:
            check_texts(pairs, "second text")
            if len(texts) != len(pairs):
                raise InputError(
                    f"{pluralize(len(texts), 'text')} but {pluralize(len(pairs), 'second text')}; "
                    "give one second text for each text."
                )
            rows = list(zip(texts, pairs, strict=True))
        try:
            return encode(rows, add_special_tokens=special)
        except NOT_FROM_TOKENIZERS:
            raise
        except BaseException as error:  # a plain Exception or a panic of the library, which does not name the text
            self._raise_for_failing_text(texts, pairs)
            raise encoding_error("a text", texts[0], error) from error

    def _raise_for_failing_text(self, texts: Sequence[str], pairs: Sequence[str] | None) -> None:
        """Encode the texts one by one, to name the first that fails."""
        for number, text in enumerate(texts):
            try:
                self.backend.encode(text, None if pairs is None else pairs[number])
            except NOT_FROM_TOKENIZERS:
                raise
            except BaseException as error:
                raise encoding_error(f"{'text' if pairs is None else 'pair'} {number}", text, error) from error

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of token ids, without special tokens unless `special`. Raises InputError for ids out of range."""
        for position, number in enumerate(ids):
            if number < 0 or self.backend.id_to_token(number) is None:
                raise InputError(
                    f"token {position} has the id {number}, but this tokenizer's vocabulary has {self.size} tokens. "
                    "Use the tokenizer that belongs to the model."
                )
        return self._decoded(list(ids), skip_special_tokens=not special)

    def decode_generated(self, ids: Sequence[int]) -> str:
        """The text of generated token ids. Ids beyond the vocabulary (padding rows of the embedding) are ignored."""
        return self._decoded(list(ids))

    def _decoded(self, ids: list[int], **options: bool) -> str:
        try:
            text: str = self.backend.decode(ids, **options)
            return text
        except NOT_FROM_TOKENIZERS:
            raise
        except BaseException as error:  # a plain Exception or a panic of the library
            raise InputError(
                f"the decoder of this tokenizer failed: {shorten(str(error))}. "
                'Compare "decoder" in tokenizer.json with that of the original model.'
            ) from error

    @property
    def kind(self) -> str:
        """Kind of vocabulary: wordpiece, bpe, unigram or wordlevel."""
        return type(self.backend.model).__name__.lower()

    @property
    def size(self) -> int:
        """Number of tokens, including added tokens."""
        size: int = self.backend.get_vocab_size()
        return size

    @functools.cached_property
    def special(self) -> dict[str, int]:
        """The id of each special token, by role: cls, sep, mask, pad, unk, bos, eos."""
        own = {token.content for token in self.backend.get_added_tokens_decoder().values() if token.special}
        ids = {}
        for role in ROLES:
            name = self._tokens.get(role) or next((name for name in COMMON_NAMES[role] if name in own), None)
            number = None if name is None else self.backend.token_to_id(name)
            if number is not None:
                ids[role] = number
        return ids

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
        """The special token ids before and after a single text, for windows of a longer text."""
        encoding = self.encode(self.short_text)
        inside = [position for position, special in enumerate(encoding.special) if not special]
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]

    @functools.cached_property
    def short_text(self) -> str:
        """A short text of at least one token: a common one, or a token of the vocabulary."""
        texts: tuple[str, ...] = (*SHORT_TEXTS, *self.backend.get_vocab())
        for text in texts:
            try:
                if self.ids_batch([text], special=False)[0]:
                    return text
            except InputError:  # not in the vocabulary, which has no unknown token
                continue
        raise InputError("no token of this tokenizer's vocabulary can be encoded. Use another tokenizer.")

    def to_json(self, *, pretty: bool = False) -> str:
        """The content of tokenizer.json."""
        with file_errors("the tokenizer"):
            highest = max(self.backend.get_vocab().values(), default=0)
            if highest > MAX_ID:  # the library loops over all ids up to it
                raise InputError(f"the tokenizer has a token with the id {highest:,}; expected at most {MAX_ID:,}.")
            content: str = self.backend.to_str(pretty=pretty)
            return content

    def without_special_tokens(self) -> Tokenizer:
        """The same tokenizer without special tokens around a text."""
        with file_errors("the tokenizer"):
            backend = tokenizers.Tokenizer.from_str(self.to_json())
        backend.post_processor = None
        return Tokenizer(backend, tokens=self._tokens, settings=self.settings)

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json and tokenizer_config.json, which AutoTokenizer of transformers reads.

        The tokenizer of the target language, if there is one, is written to a subfolder. Raises FolderError if the
        folder does not exist.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise FolderError(f"{folder} is not a folder. Create it first.")
        settings = {name: value for name, value in self.settings.items() if name not in ("auto_map", "name_or_path")}
        if "auto_map" in self.settings or not settings.get("tokenizer_class"):
            settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        for role in self.special:
            token = self.backend.id_to_token(self.special[role])
            settings.setdefault(f"{role}_token", token)
        if isinstance(self.backend, FeatureBackend):
            (folder / FEATURES).write_text(self.to_json(), encoding="utf-8")
            return
        (folder / "tokenizer.json").write_text(self.to_json(pretty=True), encoding="utf-8")
        content = json.dumps(settings, indent=2, ensure_ascii=False)
        (folder / "tokenizer_config.json").write_text(content + "\n", encoding="utf-8")
        if self.target is not None:
            (folder / TARGET_FOLDER).mkdir(exist_ok=True)
            self.target.save(folder / TARGET_FOLDER)
