"""What a folder says of generating: wrong values are named with their file, several ends are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.checkpoint.families.marian import MARIAN
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import build_config_json, write_folder
from regard.errors import FolderError


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    write_folder(tmp_path / "llama", from_preset("tiny-llama"))
    return tmp_path / "llama"


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | values))


WRONG = [
    {"max_new_tokens": "20"},
    {"max_new_tokens": 0},
    {"max_new_tokens": 10**12},
    {"min_new_tokens": [1]},
    {"min_new_tokens": -1},
    {"num_beams": "4"},
    {"num_beams": 0},
    {"num_beams": 10**9},
    {"num_beams": 2.5},
    {"length_penalty": "a"},
    {"length_penalty": 1e300},
    {"early_stopping": "soon"},
    {"early_stopping": {}},
    {"repetition_penalty": 0},
    {"repetition_penalty": None, "no_repeat_ngram_size": "3"},
    {"no_repeat_ngram_size": -2},
    {"bad_words_ids": 5},
    {"bad_words_ids": [5]},
    {"bad_words_ids": [["a"]]},
    {"bad_words_ids": [[]]},
    {"bad_words_ids": [[10**9]]},
    {"do_sample": "yes"},
    {"do_sample": True, "temperature": "hot"},
    {"do_sample": True, "temperature": 0},
    {"do_sample": True, "top_k": 1.5},
    {"do_sample": True, "top_p": 7},
    {"eos_token_id": "2"},
    {"eos_token_id": []},
    {"eos_token_id": [2, None]},
    {"eos_token_id": -1},
    {"forced_eos_token_id": 10**9},
    {"forced_bos_token_id": "x" * 100_000},
]


@pytest.mark.parametrize("values", WRONG, ids=lambda values: str(values)[:40])
def test_a_wrong_value_is_named(llama: Path, values: dict[str, Any]) -> None:
    change(llama, "generation_config.json", **values)
    model = regard.load(llama)
    with pytest.raises(FolderError, match=list(values)[-1]) as caught:
        model.generate_ids([[3, 4]], max_tokens=2)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("content", ["[1]", "3", '"x"'])
def test_settings_that_are_none(llama: Path, content: str) -> None:
    (llama / "generation_config.json").write_text(content)
    with pytest.raises(FolderError, match=r"generation_config\.json"):
        regard.load(llama).generate_ids([[3, 4]], max_tokens=2)


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_any_of_several_ends_stops_and_all_are_kept(llama: Path, tmp_path: Path, file: str) -> None:
    plain = regard.load(llama).generate_ids([[3, 4, 5]], max_tokens=12)[0]
    ends = [99, plain[4], plain[7]]
    (llama / "generation_config.json").unlink()
    change(llama, file, eos_token_id=ends)
    model = regard.load(llama)
    expected = plain[: min(plain.index(end) for end in ends[1:]) + 1]
    assert model.generate_ids([[3, 4, 5]], max_tokens=12)[0] == expected
    again = model.save(tmp_path / "again")
    for name in {"config.json", file}:
        assert json.loads((again / name).read_text())["eos_token_id"] == ends or file != name
    assert regard.load(again).generate_ids([[3, 4, 5]], max_tokens=12)[0] == expected


def test_an_end_outside_the_vocabulary_is_never_written_and_no_error(llama: Path) -> None:
    change(llama, "generation_config.json", eos_token_id=128001, min_new_tokens=2)
    assert len(regard.load(llama).generate_ids([[3, 4]], max_tokens=4)[0]) == 4


def test_ends_of_a_tokenizer_do_not_replace_several_ends() -> None:
    from regard.checkpoint.sidecars import tokenizer_ids

    config = {"bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": 2}
    assert tokenizer_ids(config, {"bos": 5, "eos": 6}) == {"bos_token_id": 5}


def test_scores_that_are_no_numbers_leave_no_row(llama: Path) -> None:
    model = regard.load(llama)
    with pytest.raises(regard.errors.InputError, match="no continuation of prompt 0 has a finite score"):
        model.generate_ids([[3, 4]], beams=2, length_penalty=-20.0, max_tokens=100)


@pytest.mark.parametrize("start", [-(2**63), -1, 100, 10**9])
def test_a_start_outside_the_vocabulary_is_refused(start: int, tmp_path: Path) -> None:
    from dataclasses import replace

    from regard.checkpoint.reading import preprocessing_of
    from regard.text.tokenizer import Tokenizer

    checkpoint = from_preset("tiny-marian")
    checkpoint = replace(
        checkpoint, hf_config={**build_config_json(checkpoint, MARIAN), "decoder_start_token_id": start}
    )
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\n")
    with pytest.raises(FolderError, match=f"decoder_start_token_id is {start}, expected an id from 0 to 99"):
        preprocessing_of(checkpoint, Tokenizer.load(tmp_path))
