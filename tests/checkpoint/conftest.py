"""A folder of a tiny model, and a hub that serves it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.checkpoint.hub_server import Hub

from regard.checkpoint.manifest import MANIFEST
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "model", from_preset("tiny-bert", dtype=torch.float32))
    return tmp_path / "model"


@pytest.fixture
def hub(folder: Path) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MANIFEST}
    pickled = {"config.json": files["config.json"], "pytorch_model.bin": b"a pickle"}
    models = {"org/tiny": files | {"weights.h5": b"not wanted", "code.py": b"never"}, "org/pickled": pickled}
    served = Hub(models | {PUBLISHED["bert-base-uncased"]: files})
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()
