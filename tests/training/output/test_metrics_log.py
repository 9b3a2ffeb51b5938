"""metrics.jsonl of a training."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.training.helpers import LONG, Digest, Train, metrics

from regard.errors import FolderError
from regard.training.output.metrics_log import TrainingEvent


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_metrics_that_cannot_be_written(whole: Path, small: Train, digest: Digest, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def on_event(event: TrainingEvent) -> None:
            if event.step == 9:
                patch.setattr(Path, "open", full)

        with pytest.raises(FolderError, match=r"metrics.jsonl could not be written: No space left.*--resume"):
            small(tmp_path, **LONG, overwrite=True, progress=on_event)
    small(tmp_path, **LONG, resume=True)
    assert digest(tmp_path) == digest(whole)
    assert metrics(tmp_path) == metrics(whole)
