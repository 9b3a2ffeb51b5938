"""Model folders of every family, damaged: described, loaded, used, saved and loaded again."""

from __future__ import annotations

import functools
import json
import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.fuzz_tokenizers import bases as tokenizers
from tests.fuzz.fuzz_tokenizers import damage, damage_links, write
from tests.fuzz.mutate import damaged_json, other_value, outside_file

WRITERS = ("gpt2", "llama", "t5", "bart", "marian", "transformer", "pegasus")
PRESETS = ("bert", "roberta", "electra", "albert", "modernbert", *WRITERS)
RECURRENT = ("gru-additive", "lstm-feeding", "elmo", "lstm-language")
WRITING = (*WRITERS, "gru-additive", "lstm-feeding", "lstm-language")
TOKENIZERS = {"translators": "unigram", "others": "wordpiece"}
TEXTS = ("a small dog ran", "the large dog stayed " * 3, "x", "Größe 日本")
GENERATION = {
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
    "max_new_tokens": 20,
    "min_new_tokens": 1,
    "num_beams": 2,
    "length_penalty": 0.9,
    "early_stopping": True,
    "repetition_penalty": 1.1,
    "no_repeat_ngram_size": 3,
    "bad_words_ids": [[5], [6, 7]],
    "forced_eos_token_id": None,
}
DRAWING = {"eos_token_id": 2, "do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9}
SIZES = ("layers", "width", "size", "dim", "position", "heads", "vocab", "ffn", "buckets", "d_", "window", "head")


def _saved(
    name: str, folder: Path, *, heads: dict[str, int] | None = None, labels: tuple[str, ...] | None = None
) -> dict[str, bytes]:
    """The files of a small untrained model, in shards for every other family."""
    from dataclasses import replace

    from regard.checkpoint.source import from_preset
    from regard.checkpoint.write_folder import write_folder

    made = replace(from_preset(f"tiny-{name}", heads=heads), labels=labels)
    write_folder(folder, made, shard_bytes=20_000 if len(name) % 2 else 1 << 40)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


@functools.cache
def bases() -> dict[str, dict[str, bytes]]:
    """Files of whole model folders, by kind."""
    results: dict[str, dict[str, bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (*PRESETS, *RECURRENT):
            files = _saved(name, Path(folder) / name)
            words = dict(tokenizers()["unigram" if name in WRITING else "wordpiece"])
            results[name] = {**files, **words}
        labels = ("bad", "good", "[odd]")
        classify = _saved("bert", Path(folder) / "classify", heads={"sequence": 3}, labels=labels)
        tag = _saved("distilbert", Path(folder) / "tag", heads={"token": 3}, labels=("O", "B-X", "I-X"))
        span = _saved("roberta", Path(folder) / "span", heads={"span": 2})
    words = tokenizers()["wordpiece"]
    run = {
        "regard": "0.1.0",
        "task": "classify",
        "task_settings": {"kind": "single", "labels": list(labels)},
        "settings": {"window": 64, "overlap": 0.25},
    }
    results["classify"] = {**classify, **words, "run.json": _text(run)}
    results["tag"] = {**tag, **words}
    results["span"] = {**span, **words}
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    results["sentences"] = {
        **results["bert"],
        "modules.json": _text(modules),
        "1_Pooling/config.json": _text({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}),
        "sentence_bert_config.json": _text({"max_seq_length": 128}),
        "config_sentence_transformers.json": _text({"prompts": {}}),
    }
    for name in WRITING:
        results[f"{name} generation"] = {**results[name], "generation_config.json": _text(GENERATION)}
    results["llama drawing"] = {**results["llama"], "generation_config.json": _text(DRAWING)}
    apart = {f"target_tokenizer/{name}": content for name, content in words.items()}
    results["apart"] = {**results["marian"], **apart}
    return results


def prepare() -> None:
    import torch

    import regard.predict.load  # noqa: F401

    torch.set_num_threads(1)
    torch.empty(1, device="meta").normal_()  # imports much when it is first called
    bases()
    outside_file()


def _damage_sizes(draw: random.Random, folder: Path, content: bytes) -> None:
    """Numbers of config.json that say how large the network is."""
    value = json.loads(content)
    names = [name for name in value if any(part in name for part in SIZES) and isinstance(value[name], int)]
    for _ in range(draw.choice((1, 1, 2))):
        name = draw.choice(names or list(value))
        value[name] = draw.choice(
            (0, -1, 1, 2, 3, 33, 64, 129, 10**5, 10**9, 2**31, 2**63, 10**30, None, True, "8", 8.0, [8])
        )
    path = folder / "config.json"
    if path.is_file() and not path.is_symlink():
        path.write_bytes(_text(value))


def _damage_header(draw: random.Random, folder: Path, name: str, content: bytes) -> None:
    """The header of a safetensors file, as JSON."""
    size = struct.unpack("<Q", content[:8])[0]
    header = damaged_json(draw, json.loads(content[8 : 8 + size]))
    length = draw.choice((len(header),) * 6 + (0, 2**63, 10**9, len(header) + 8))
    (folder / name).write_bytes(struct.pack("<Q", length) + header + content[8 + size :])


def _damage_one(draw: random.Random, folder: Path, files: dict[str, bytes]) -> None:
    names = list(files)
    weights = [name for name in names if name.endswith(".safetensors")]
    small = [name for name in names if name not in weights and not name.startswith(("tokenizer", "special"))]
    way = draw.random()
    if way < 0.2:
        _damage_sizes(draw, folder, files["config.json"])
    elif way < 0.3:
        name = draw.choice(weights)
        if (folder / name).is_file() and not (folder / name).is_symlink():
            _damage_header(draw, folder, name, files[name])
    elif way < 0.9:
        name = draw.choice(small)
        damage(draw, folder, name, files[name])
    else:
        name = draw.choice(names)
        damage(draw, folder, name, files[name])


def fuzz(draw: random.Random, folder: Path) -> None:
    from regard.predict.load import info, load

    files = draw.choice(list(bases().values()))
    inner = folder / "model"
    inner.mkdir()
    write(inner, files)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        _damage_one(draw, inner, files)
    if draw.random() < 0.05:
        damage_links(draw, inner)
    _quietly(lambda: info(inner))
    model = load(inner, device="cpu")
    use(draw, model, folder / "again")


def _quietly(one: Callable[[], object]) -> None:
    """An error of regard ends one use, not the others."""
    from regard.errors import RegardError

    try:
        one()
    except RegardError:
        return


def use(draw: random.Random, model: Any, again: Path) -> None:
    """Everything that is done with a model."""
    from regard.predict.load import load

    texts = list(TEXTS)
    odd = other_value(draw, draw.choice((1, 0.5, "a")))
    setting = draw.choice(("beams", "best", "top_k", "no_repeat", "temperature", "banned", "stop"))
    uses: tuple[Callable[[], object], ...] = (
        lambda: (repr(model), model.info(), model.task, model.labels),
        lambda: model.embed(texts),
        lambda: [answer.json() for answer in model.predict(texts[2:])],
        lambda: [answer.json() for answer in model.predict([("who ran?", texts[0])])],
        lambda: model.fill("a small [MASK] ran"),
        lambda: model.next_sentence(texts[0], texts[2]),
        lambda: model.generate(texts[0], max_tokens=4),
        lambda: model.generate_ids([[1, 2, 3]], max_tokens=3),
        lambda: model.continuations(texts[:2], max_tokens=3),
        lambda: list(model.stream(texts[0], max_tokens=3)),
        lambda: model.generate(texts[0], **{"max_tokens": 3, setting: odd}),
        lambda: model.outputs([[1, 2, 3], [4]]),
        lambda: (model.save(again), _quietly(lambda: load(again, device="cpu").embed(texts))),
    )
    for one in draw.sample(uses, 5):
        _quietly(one)
