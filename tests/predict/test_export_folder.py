"""Exported folders are model folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.export.onnx_files import OnnxFile
from regard.predict import export_folder, load
from regard.predict.export_folder import export_onnx
from regard.predict.model import Model


def test_an_export_is_a_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OnnxFile("onnx/model.onnx", 3, ("input_ids",), ("logits",), 0.0)
    monkeypatch.setattr(export_folder, "write_onnx_files", lambda network, folder, **_: (file,))
    model = Model(random_checkpoint("tiny-bert", {"sequence": 3}), word_tokenizer(special=True))
    folder = model.save(tmp_path / "model")
    result = export_onnx(folder, tmp_path / "exported")
    assert result.files == (file,)
    assert load(result.folder, device="cpu").info().family == "bert"
    with pytest.raises(Exception, match="exported"):
        export_onnx(model, tmp_path / "exported")
    assert export_onnx(model, tmp_path / "exported", overwrite=True).folder == str(tmp_path / "exported")


@pytest.mark.parametrize(
    ("name", "what"), [("tiny-bert", "A network without a task"), ("tiny-gpt2", "A model that generates text")]
)
def test_an_export_has_a_model_card(name: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [OnnxFile("onnx/model.onnx", 3, ("input_ids", "attention_mask"), ("logits",), 0.0)]
    monkeypatch.setattr(export_folder, "write_onnx_files", lambda *_, **__: tuple(files))
    folder = Model(random_checkpoint(name), word_tokenizer(special=True)).save(tmp_path / "model")
    export_onnx(folder, tmp_path / "first")
    card = (tmp_path / "first" / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# first\n\n{what}, ")
    assert "| `onnx/model.onnx` | 0.0 | `input_ids`, `attention_mask` | `logits` |" in card
    (folder / "README.md").write_text("# My model\n\nAbout it.\n", encoding="utf-8")
    files[0] = OnnxFile("onnx/model.onnx", 3, ("input_ids", "token_type_ids"), ("logits",), 0.0)
    export_onnx(folder, tmp_path / "second")
    export_onnx(tmp_path / "second", tmp_path / "third")
    card = (tmp_path / "third" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# My model\n\nAbout it.\n\n## ONNX files\n")
    assert card.count("## ONNX files") == 1
    assert 'feed = {"input_ids": [encoding.ids], "token_type_ids": [encoding.type_ids]}' in card


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_folder, "write_onnx_files", fail)
    with pytest.raises(Exception, match="No space left"):
        export_onnx(Model(random_checkpoint("tiny-bert")), tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []
