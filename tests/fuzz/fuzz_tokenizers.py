"""Tokenizer files of every kind, damaged: loaded, used on difficult texts, saved and loaded again."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.mutate import LETTERS, damaged, damaged_json, outside_file, special_file

TEXTS = (
    "a small dog ran home.",
    "",
    "Größe 日本語 \x00\x1b[31m ﷺ",
    "[CLS] <s> </s> [MASK] <mask>",
    "x" * 3000,
    " \t\r\n",
)
WORDS = (
    "a small dog ran home and the large dog stayed here",
    "small dogs run home, large dogs stay",
    "one two three 123",
)
ROLES = ("[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]")


def _learned(kind: str) -> str:
    """tokenizer.json of a small tokenizer."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    trainer: trainers.Trainer
    if kind == "unigram":
        made = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=60, special_tokens=list(ROLES), show_progress=False, unk_token="[UNK]"
        )
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    elif kind == "bpe":
        made = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=list(ROLES), show_progress=False)
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        trainer.initial_alphabet = pre_tokenizers.ByteLevel.alphabet()
    elif kind == "words":
        made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        trainer = trainers.WordLevelTrainer(special_tokens=list(ROLES), show_progress=False)
        made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    else:
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trainer = trainers.WordPieceTrainer(vocab_size=80, special_tokens=list(ROLES), show_progress=False)
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
    made.train_from_iterator(WORDS, trainer)
    number = made.token_to_id
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", number("[CLS]")), ("[SEP]", number("[SEP]"))],
    )
    made.enable_padding(pad_id=number("[PAD]"), pad_token="[PAD]")
    made.enable_truncation(64)
    return made.to_str()


def _settings(cls: str, **more: object) -> dict[str, object]:
    names = {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "pad": "[PAD]", "unk": "[UNK]"}
    return {"tokenizer_class": cls, **{f"{role}_token": name for role, name in names.items()}, **more}


@functools.cache
def bases() -> dict[str, dict[str, bytes]]:
    """Files of whole tokenizer folders, by kind."""

    def text(value: object) -> bytes:
        return json.dumps(value).encode()

    results = {
        kind: {
            "tokenizer.json": _learned(kind).encode(),
            "tokenizer_config.json": text(_settings("PreTrainedTokenizerFast", model_max_length=512)),
            "special_tokens_map.json": text(
                {"mask_token": {"content": "[MASK]", "lstrip": True}, "unk_token": "[UNK]"}
            ),
        }
        for kind in ("unigram", "bpe", "words", "wordpiece")
    }
    vocabulary = json.loads(results["wordpiece"]["tokenizer.json"])["model"]["vocab"]
    size = len(vocabulary)
    added = {str(size): {"content": "<new>", "special": True, "lstrip": False}}
    results["vocab.txt"] = {
        "vocab.txt": "\n".join(sorted(vocabulary, key=vocabulary.__getitem__)).encode(),
        "tokenizer_config.json": text(_settings("BertTokenizer", do_lower_case=True, added_tokens_decoder=added)),
        "special_tokens_map.json": text({"cls_token": "[CLS]"}),
        "added_tokens.json": text({"<other>": size + 1}),
    }
    model = json.loads(results["bpe"]["tokenizer.json"])["model"]
    merges = "\n".join(pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"])
    for kind, cls in (("gpt2", "GPT2Tokenizer"), ("roberta", "RobertaTokenizer")):
        results[kind] = {
            "vocab.json": text(model["vocab"]),
            "merges.txt": f"#version: 0.2\n{merges}\n".encode(),
            "tokenizer_config.json": text(_settings(cls, add_prefix_space=False)),
            "added_tokens.json": text({"<new>": len(model["vocab"])}),
        }
    both = {f"target_tokenizer/{name}": content for name, content in results["unigram"].items()}
    results["translator"] = {**results["wordpiece"], **both}
    return results


def prepare() -> None:
    from regard.text.tokenizer import Tokenizer  # noqa: F401

    bases()
    outside_file()


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def damage(draw: random.Random, folder: Path, name: str, content: bytes) -> None:
    """Change one file of a folder."""
    path, way = folder / name, draw.random()
    if path.is_symlink() or not path.is_file():  # damaged before
        return
    if way < 0.12:
        special_file(draw, path)
    elif way < 0.35 or not name.endswith(".json"):
        path.write_bytes(damaged(draw, content))
    else:
        path.write_bytes(damaged_json(draw, json.loads(content)))


def damage_links(draw: random.Random, folder: Path) -> None:
    """Folders in folders, and links in the place of one."""
    target = folder / "target_tokenizer"
    way = draw.randrange(4)
    if way == 0 and not target.exists():
        target.symlink_to(draw.choice((".", "..", outside_file().parent, "target_tokenizer")))
    elif way == 1:
        (target / "target_tokenizer").mkdir(parents=True, exist_ok=True)
        (target / "target_tokenizer" / draw.choice(("vocab.txt", "tokenizer.json"))).symlink_to(outside_file())
    elif way == 2:
        target.mkdir(exist_ok=True)
        link = target / draw.choice(("added_tokens.json", "special_tokens_map.json"))
        link.unlink(missing_ok=True)
        link.symlink_to(outside_file())
    else:
        (folder / "spiece.model").write_bytes(draw.randbytes(50))


def fuzz(draw: random.Random, folder: Path) -> None:
    from regard.text.tokenizer import Tokenizer

    files = draw.choice(list(bases().values()))
    inner = folder / "model"
    inner.mkdir()
    write(inner, files)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        name = draw.choice(list(files))
        damage(draw, inner, name, files[name])
    if draw.random() < 0.1:
        damage_links(draw, inner)
    tokenizer = Tokenizer.load(inner)
    use(draw, tokenizer, folder / "again")


def use(draw: random.Random, tokenizer: object, again: Path) -> None:
    """Everything that is done with a tokenizer. An error of regard ends one use, not the others."""
    from regard.errors import RegardError
    from regard.text.tokenizer import Tokenizer

    assert isinstance(tokenizer, Tokenizer)
    texts = [*TEXTS, draw.choice(LETTERS), "".join(draw.choice(WORDS) for _ in range(3))]
    again.mkdir()
    uses: tuple[Callable[[], object], ...] = (
        lambda: [len(result.ids) + len(result.offsets) for result in tokenizer.encode_batch(texts)],
        lambda: tokenizer.encode(texts[0], texts[1]).sequence_ids,
        lambda: tokenizer.ids_batch(texts, texts[::-1]),
        lambda: tokenizer.decode(tokenizer.encode(texts[-1]).ids),
        lambda: tokenizer.output_tokenizer.decode_generated([draw.randrange(400) for _ in range(20)]),
        lambda: tokenizer.decode(range(30), special=True),
        lambda: (tokenizer.kind, tokenizer.size, tokenizer.special, tokenizer.short_text, tokenizer.surrounding_ids),
        lambda: tokenizer.without_special_tokens().ids_batch(texts),
        lambda: (tokenizer.save(again), Tokenizer.load(again).ids_batch(texts)),
    )
    for one in uses:
        try:
            one()
        except RegardError:
            continue
