"""Read the tokenizer files of a model folder as a tokenizer of the `tokenizers` library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from regard.errors import FolderError, shorten
from regard.foreign import file_errors, path_inside, read_bytes, read_json_value, read_text
from regard.text.features.encoding import FILE as FEATURES
from regard.text.features.files import read_features

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
ROBERTA_LIKE = ("roberta", "bart", "longformer")  # tokenizer classes with <s> and </s> around texts

# Vocabulary files in the format of SentencePiece, which are not supported.
UNSUPPORTED = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm")


def tokenizer_kind(folder: Path) -> str | None:
    """The main tokenizer file of the folder: tokenizer.json, vocab.txt, … ; None if it has none."""
    if _exists(folder, "tokenizer.json"):
        return "tokenizer.json"
    if _exists(folder, "vocab.txt"):
        return "vocab.txt"
    if _exists(folder, "vocab.json") and _exists(folder, "merges.txt"):
        return "vocab.json"
    return FEATURES if _exists(folder, FEATURES) else None


def _exists(folder: Path, name: str) -> bool:
    """True if there is a file, or anything else, of that name. A pipe or a broken link is refused when it is read."""
    return os.path.lexists(folder / name)


def read_backend(folder: Path, settings: Mapping[str, Any]) -> tuple[Backend, dict[str, str]]:
    """The tokenizer of the folder, and the default special tokens of its kind, by role."""
    kind = tokenizer_kind(folder)
    if kind is None:
        raise FolderError(_no_tokenizer(folder))
    if kind == FEATURES:
        features: Any = read_features(path_inside(folder, FEATURES))
        return features, {}
    if kind == "tokenizer.json":
        return _parsed(folder, kind, lambda path: Backend.from_buffer(read_bytes(path))), {}
    return _word_piece(folder, settings) if kind == "vocab.txt" else _byte_level(folder, settings)


def read_settings(folder: Path) -> dict[str, Any]:
    """`tokenizer_config.json`, with special tokens of `special_tokens_map.json` that it does not name."""
    settings = read_json(folder, "tokenizer_config.json")
    for name, value in read_json(folder, "special_tokens_map.json").items():
        if settings.get(name) is None:
            settings[name] = value
    return settings


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file."""
    if not _exists(folder, name):
        return {}
    path = path_inside(folder, name)
    with file_errors(path):
        content = read_json_value(path)
    if not isinstance(content, dict):
        raise FolderError(f"{path} contains a {type(content).__name__}, expected an object.")
    return content


def named_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens in the settings, by role."""
    tokens = {}
    for role in ROLES:
        value = settings.get(f"{role}_token")
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            tokens[role] = value
    return tokens


def _word_piece(folder: Path, settings: Mapping[str, Any]) -> tuple[Backend, dict[str, str]]:
    """BERT's tokenizer: split at spaces and punctuation, then greedily into the longest tokens from the left."""
    vocabulary = _parsed(folder, "vocab.txt", _numbered_lines)
    tokens = BERT_TOKENS | named_tokens(settings)
    for role in ("cls", "sep", "unk"):
        if tokens[role] not in vocabulary:
            raise FolderError(
                f'{folder / "vocab.txt"} has no line "{shorten(tokens[role], 60)}", which the tokenizer '
                f'needs as its {role} token. Add it, or set "{role}_token" in tokenizer_config.json to another token.'
            )
    with file_errors(folder / "tokenizer_config.json"):
        backend = bert_backend(vocabulary, tokens, settings)
    _add_special(backend, folder, tokens, settings)
    return backend, tokens


def _byte_level(folder: Path, settings: Mapping[str, Any]) -> tuple[Backend, dict[str, str]]:
    """GPT-2's or RoBERTa's tokenizer: byte-level BPE, with merges in the order they were learned."""
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
        (tokens["sep"], _token_id(backend, folder, tokens["sep"])),
        (tokens["cls"], _token_id(backend, folder, tokens["cls"])),
        bool(settings.get("trim_offsets", True)),
        prefix,
    )
    return backend, tokens


def bert_backend(vocabulary: dict[str, int], tokens: Mapping[str, str], settings: Mapping[str, Any]) -> Backend:
    """BERT's WordPiece with its normalizer and [CLS] and [SEP] around texts. Special tokens are not yet added."""
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
    with file_errors(path, fix="Copy the file again from the original model; it may be incomplete."):
        return parse(path)


def _numbered_lines(path: Path) -> dict[str, int]:
    lines = read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return {line: number for number, line in enumerate(lines)}


def _merged_pairs(path: Path) -> list[tuple[str, str]]:
    """The pairs in merges.txt, one per line, in the order they were learned."""
    pairs = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#version"):
            continue
        first, _, second = line.partition(" ")
        if not first or not second or " " in second:
            raise FolderError(f'{path} line {number}: "{shorten(line, 60)}" is not two tokens separated by a space.')
        pairs.append((first, second))
    return pairs


def _is_roberta(backend: Backend, settings: Mapping[str, Any]) -> bool:
    class_name = settings.get("tokenizer_class")
    if class_name:
        return any(part in str(class_name).lower() for part in ROBERTA_LIKE)
    return all(backend.token_to_id(token) is not None for token in ("<s>", "</s>", "<mask>"))


def _add_special(backend: Backend, folder: Path, tokens: Mapping[str, str], settings: Mapping[str, Any]) -> None:
    """Add the tokens that were added after training, with the ids in their files, then the special tokens."""
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
                f'the added token "{shorten(token.content, 60)}" of {folder} has the id {number}, '
                f"but its vocabulary has it at {backend.token_to_id(token.content)}. The files belong to different "
                "models: copy them again."
            )
    known = {token.content for token in extra.values()}
    for role, content in tokens.items():
        if content not in known:
            strip_left = role == "mask" and content == "<mask>"  # RoBERTa's mask includes the space before it
            backend.add_special_tokens([AddedToken(content, lstrip=strip_left, normalized=False, special=True)])
            known.add(content)


def _token_id(backend: Backend, folder: Path, token: str) -> int:
    number = backend.token_to_id(token)
    if number is None:  # the library does not add an empty token
        raise FolderError(f'{folder / "tokenizer_config.json"}: "{shorten(token, 60)}" cannot be a special token.')
    return number


def _added(value: Mapping[str, Any]) -> AddedToken:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return AddedToken(value["content"], **{name: bool(value[name]) for name in names if name in value})


def _no_tokenizer(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder} is not a folder. Give the folder with the tokenizer files."
    problem = f"{folder} has no tokenizer: expected tokenizer.json, vocab.txt, or vocab.json with merges.txt."
    others = [name for name in UNSUPPORTED if (folder / name).is_file()]
    if others:
        return (
            f"{problem} It has {others[0]}, which transformers converts into a tokenizer.json: "
            'python -c "from transformers import AutoTokenizer as T; '
            "T.from_pretrained('FOLDER').save_pretrained('FOLDER')\""
        )
    return f"{problem} Copy one of them into the folder."
