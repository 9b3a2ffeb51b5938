"""Files beside the weights: labels, pooling and settings for generation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checkpoint.folders import written
from tests.references import transformers

from regard.checkpoint.folder import read_folder
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_labels_are_read_and_written(tmp_path: Path, kind: str) -> None:
    labels = ("négatif", "neutral", "positive")
    folder = written(tmp_path / "model", "tiny-bert", {kind: 3}, labels=labels)
    assert read_folder(folder).labels == labels
    config = transformers.AutoConfig.from_pretrained(folder)
    assert config.id2label == dict(enumerate(labels))
    assert config.label2id == {label: number for number, label in enumerate(labels)}


def test_unnamed_labels_are_counted(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert", {"sequence": 4})
    assert transformers.AutoModelForSequenceClassification.from_pretrained(folder).config.num_labels == 4
    assert read_folder(folder).labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
    assert "id2label" not in json.loads((written(tmp_path / "two", "tiny-bert") / "config.json").read_text())


def test_settings_for_generating_are_kept_or_made(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-gpt2")
    file = "generation_config.json"
    assert json.loads((folder / file).read_text())["eos_token_id"] == 99
    assert transformers.GenerationConfig.from_pretrained(folder).eos_token_id == 99
    (folder / file).write_text('{"eos_token_id": 7, "top_p": 0.5}')
    (folder / "sentence_bert_config.json").write_text("{}")
    write_folder(tmp_path / "again", read_folder(folder))
    assert json.loads((tmp_path / "again" / file).read_text()) == {"eos_token_id": 7, "top_p": 0.5}
    (folder / file).unlink()
    write_folder(tmp_path / "made", read_folder(folder))
    assert json.loads((tmp_path / "made" / file).read_text())["eos_token_id"] == 99
    assert not (written(tmp_path / "bert", "tiny-bert") / file).exists()


def sentences(folder: Path, pooling: object, *, modules: object = None) -> Path:
    """The folder as sentence-transformers leaves it."""
    names = ["Transformer", "Pooling", "Normalize"] if modules is None else modules
    if isinstance(names, list):
        paths = ["", *(f"{i}_{name}" for i, name in enumerate(names[1:], start=1))]
        stem = "sentence_transformers.models."
        names = [
            {"idx": i, "name": str(i), "path": p, "type": stem + str(n)}
            for i, (n, p) in enumerate(zip(names, paths, strict=True))
        ]
    (folder / "modules.json").write_text(json.dumps(names))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def flags(mode: str) -> dict[str, object]:
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    sizes: dict[str, object] = {"word_embedding_dimension": 32, "include_prompt": True}
    return sizes | {f"pooling_mode_{m}": m == mode for m in modes}


@pytest.mark.parametrize(
    ("pooling", "ours"),
    [
        (flags("mean_tokens"), "mean"),
        (flags("cls_token"), "first"),
        (flags("max_tokens"), "max"),
        ({"pooling_mode": "mean", "include_prompt": True}, "mean"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": "max"}, "max"),
    ],
)
def test_pooling_is_read_and_written_back(tmp_path: Path, pooling: dict[str, object], ours: str) -> None:
    folder = sentences(written(tmp_path / "model", "tiny-bert"), pooling)
    checkpoint = read_folder(folder)
    assert checkpoint.pooling == ours
    write_folder(tmp_path / "again", checkpoint)
    for name in ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json"):
        assert json.loads((tmp_path / "again" / name).read_text()) == json.loads((folder / name).read_text())
    assert read_folder(tmp_path / "again").pooling == ours
    assert read_folder(written(tmp_path / "plain", "tiny-bert")).pooling is None


@pytest.mark.parametrize(
    ("pooling", "modules", "message"),
    [
        (
            flags("mean_sqrt_len_tokens"),
            None,
            "the pooling mean_sqrt_len_tokens is not known; known are cls, mean and max",
        ),
        (flags("none of them"), None, r"the pooling of modules\.json is not known"),
        ({"pooling_mode": "lasttoken"}, None, "the pooling lasttoken is not known"),
        ([], None, "holds a list, expected a JSON object"),
        ({}, {"a": 1}, r"modules\.json is not a list of modules"),
        ({}, 5, r"modules\.json is not a list of modules"),
        (flags("mean_tokens"), ["Transformer", "Pooling", "Dense"], "has a Dense, which would change the vectors"),
        ({}, "../..", r"modules\.json is not a list of modules"),
    ],
)
def test_pooling_that_is_not_known_is_refused(tmp_path: Path, pooling: object, modules: object, message: str) -> None:
    folder = sentences(written(tmp_path / "model", "tiny-bert"), pooling, modules=modules)
    with pytest.raises(FolderError, match=message):
        read_folder(folder)


def test_a_module_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "tiny-bert")
    for path in ("../elsewhere", str(tmp_path)):
        (folder / "modules.json").write_text(json.dumps([{"path": path, "type": "models.Pooling"}]))
        with pytest.raises(FolderError, match="leads out of the folder"):
            read_folder(folder)
