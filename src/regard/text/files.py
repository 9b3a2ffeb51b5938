"""From the files of a model folder to a tokenizer of the `tokenizers` library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from regard.errors import FolderError, shorten
from regard.foreign import file_errors, path_inside, read_bytes, read_json_value, read_text

Parsed = TypeVar("Parsed")

ROLES = ("cls", "sep", "mask", "pad", "unk", "bos", "eos")

BERT_TOKENS = {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "[PAD]", "unk": "[UNK]"}
GPT2_TOKENS = {"unk": "<|endoftext|>", "bos": "<|endoftext|>", "eos": "<|endoftext|>"}
ROBERTA_TOKENS = {
    "cls": "<s>",
    "sep": "</s>",
    "mask": "<mask>",
    "pad": "<pad>",
    "unk": "<unk>",
    "bos": "<s>",
    "eos": "</s>",
}
ROBERTA_LIKE = ("roberta", "bart", "longformer")  # what a tokenizer class holds when texts stand between <s> and </s>

# Vocabularies that only a library with their own format reads.
FOREIGN = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm")


def tokenizer_kind(folder: Path) -> str | None:
    """Which of the three ways the folder holds its tokenizer, or None when it holds none of them."""
    if _there(folder, "tokenizer.json"):
        return "tokenizer.json"
    if _there(folder, "vocab.txt"):
        return "vocab.txt"
    if _there(folder, "vocab.json") and _there(folder, "merges.txt"):
        return "vocab.json"
    return None


def _there(folder: Path, name: str) -> bool:
    """Whether there is anything of that name: a pipe or a broken link is reported when it is read."""
    return os.path.lexists(folder / name)


def read_backend(folder: Path, settings: Mapping[str, Any]) -> tuple[Backend, dict[str, str]]:
    """The tokenizer of the folder, and the special tokens its kind has when no file names them."""
    kind = tokenizer_kind(folder)
    if kind is None:
        raise FolderError(_nothing_found(folder))
    if kind == "tokenizer.json":
        return _parsed(folder, kind, lambda path: Backend.from_buffer(read_bytes(path))), {}
    return _word_piece(folder, settings) if kind == "vocab.txt" else _byte_level(folder, settings)


def read_settings(folder: Path) -> dict[str, Any]:
    """`tokenizer_config.json`, with the special tokens of `special_tokens_map.json` where it names none."""
    settings = read_json(folder, "tokenizer_config.json")
    for name, value in read_json(folder, "special_tokens_map.json").items():
        if settings.get(name) is None:
            settings[name] = value
    return settings


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """The object in a JSON file; empty when there is no file."""
    if not _there(folder, name):
        return {}
    path = path_inside(folder, name)
    with file_errors(path):
        content = read_json_value(path)
    if not isinstance(content, dict):
        raise FolderError(f"{path} holds a {type(content).__name__}, but an object was expected.")
    return content


def named_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens that the settings name, by role."""
    named = {}
    for role in ROLES:
        value = settings.get(f"{role}_token")
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            named[role] = value
    return named


def _word_piece(folder: Path, settings: Mapping[str, Any]) -> tuple[Backend, dict[str, str]]:
    """BERT's tokenizer: words at spaces and punctuation, then the longest pieces from the left."""
    vocabulary = _parsed(folder, "vocab.txt", _numbered_lines)
    tokens = BERT_TOKENS | named_tokens(settings)
    for role in ("cls", "sep", "unk"):
        if tokens[role] not in vocabulary:
            raise FolderError(
                f'{folder / "vocab.txt"} has no line "{shorten(tokens[role], 60)}", which the tokenizer '
                f'needs as its {role} token. Add it, or name another one as "{role}_token" in tokenizer_config.json.'
            )
    with file_errors(folder / "tokenizer_config.json"):
        backend = bert_backend(vocabulary, tokens, settings)
    _add_special(backend, folder, tokens, settings)
    return backend, tokens


def _byte_level(folder: Path, settings: Mapping[str, Any]) -> tuple[Backend, dict[str, str]]:
    """GPT-2's tokenizer, or RoBERTa's: pairs of bytes merged in the order they were learned."""
    merges = _parsed(folder, "merges.txt", _merged_pairs)
    backend = _parsed(folder, "vocab.json", lambda path: Backend(models.BPE(read_json_value(path), merges)))
    prefix = bool(settings.get("add_prefix_space", False))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    if not _is_roberta(backend, settings):
        tokens = GPT2_TOKENS | named_tokens(settings)
        backend.post_processor = processors.ByteLevel(trim_offsets=False)
        _add_special(backend, folder, tokens, settings)
        return backend, tokens
    tokens = ROBERTA_TOKENS | named_tokens(settings)
    _add_special(backend, folder, tokens, settings)
    backend.post_processor = processors.RobertaProcessing(
        (tokens["sep"], _number(backend, folder, tokens["sep"])),
        (tokens["cls"], _number(backend, folder, tokens["cls"])),
        bool(settings.get("trim_offsets", True)),
        prefix,
    )
    return backend, tokens


def bert_backend(vocabulary: dict[str, int], tokens: Mapping[str, str], settings: Mapping[str, Any]) -> Backend:
    """WordPiece as BERT has it, with its normaliser and frame; the special tokens are not yet added."""
    backend = Backend(models.WordPiece(vocabulary, unk_token=tokens["unk"]))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    cls, sep = tokens["cls"], tokens["sep"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, vocabulary[cls]), (sep, vocabulary[sep])],
    )
    return backend


def _parsed(folder: Path, name: str, parse: Callable[[Path], Parsed]) -> Parsed:
    path = path_inside(folder, name)
    with file_errors(path, fix="Copy the file again from where the model came from; it may be cut short."):
        return parse(path)


def _numbered_lines(path: Path) -> dict[str, int]:
    lines = read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return {line: number for number, line in enumerate(lines)}


def _merged_pairs(path: Path) -> list[tuple[str, str]]:
    """One pair a line, in the order they were learned."""
    pairs = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#version"):
            continue
        first, _, second = line.partition(" ")
        if not first or not second or " " in second:
            raise FolderError(f'{path} line {number}: "{shorten(line, 60)}" is not two tokens with a space between.')
        pairs.append((first, second))
    return pairs


def _is_roberta(backend: Backend, settings: Mapping[str, Any]) -> bool:
    named = settings.get("tokenizer_class")
    if named:
        return any(part in str(named).lower() for part in ROBERTA_LIKE)
    return all(backend.token_to_id(token) is not None for token in ("<s>", "</s>", "<mask>"))


def _add_special(backend: Backend, folder: Path, tokens: Mapping[str, str], settings: Mapping[str, Any]) -> None:
    """Make the special tokens whole, then those added after learning, each with the number its file gives it."""
    stored = settings.get("added_tokens_decoder")
    with file_errors(folder / "tokenizer_config.json"):
        extra = {int(number): _added(value) for number, value in stored.items()} if isinstance(stored, dict) else {}
    with file_errors(folder / "added_tokens.json"):
        for content, number in read_json(folder, "added_tokens.json").items():
            extra.setdefault(int(number), AddedToken(content, normalized=False))
    for number, token in sorted(extra.items()):
        (backend.add_special_tokens if token.special else backend.add_tokens)([token])
        if backend.token_to_id(token.content) != number:
            raise FolderError(
                f'the added token "{shorten(token.content, 60)}" of {folder} has the number {number}, '
                "but the vocabulary beside it "
                f"gives it {backend.token_to_id(token.content)}. The files belong to different models: copy them again."
            )
    known = {token.content for token in extra.values()}
    for role, content in tokens.items():
        if content not in known:
            left = role == "mask" and content == "<mask>"  # RoBERTa's mask takes the space before it
            backend.add_special_tokens([AddedToken(content, lstrip=left, normalized=False, special=True)])
            known.add(content)


def _number(backend: Backend, folder: Path, token: str) -> int:
    number = backend.token_to_id(token)
    if number is None:  # the library does not add an empty one
        raise FolderError(f'{folder / "tokenizer_config.json"}: "{shorten(token, 60)}" cannot be a special token.')
    return number


def _added(value: Mapping[str, Any]) -> AddedToken:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return AddedToken(value["content"], **{name: bool(value[name]) for name in names if name in value})


def _nothing_found(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder} is not a folder. Give the folder that holds the tokenizer's files."
    looked = (
        f"{folder} holds no tokenizer: looked for tokenizer.json, for vocab.txt, and for vocab.json with merges.txt."
    )
    others = [name for name in FOREIGN if (folder / name).is_file()]
    if others:
        return (
            f"{looked} It has {others[0]}, which transformers turns into a tokenizer.json: "
            'python -c "from transformers import AutoTokenizer as T; '
            "T.from_pretrained('FOLDER').save_pretrained('FOLDER')\""
        )
    return f"{looked} Copy one of them into the folder."
