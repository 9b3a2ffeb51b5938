"""One exported folder for all tests: tracing takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.export.onnx_files import OnnxExport
from regard.predict.export_folder import export_onnx
from regard.predict.model import Model
from regard.progress import Progress


@pytest.fixture(scope="session")
def export_steps() -> list[Progress]:
    """The steps that the export of `exported` reported."""
    return []


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, export_steps: list[Progress]) -> OnnxExport:
    """A tiny classifier with ONNX files in fp32 and int8."""
    pytest.importorskip("onnxruntime")
    model = Model(random_checkpoint("tiny-bert", {"sequence": 3}), word_tokenizer(special=True))
    return export_onnx(model, tmp_path_factory.mktemp("onnx") / "model", int8=True, progress=export_steps.append)


@pytest.fixture(scope="session")
def exported_folder(exported: OnnxExport) -> Path:
    return Path(exported.folder)
