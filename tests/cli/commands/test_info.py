"""`regard info` as JSON and as a table."""

from __future__ import annotations

import json

import pytest
from tests.cli.helpers import run


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "info", "bert-base-uncased", "--json")
    content = json.loads(out)
    assert (status, err) == (0, "")
    assert {"family", "task", "parameters", "layers", "width", "heads", "vocabulary", "bytes"} <= set(content)
    assert content["parameters"] == 109_482_240
    assert (content["family"], content["task"], content["layers"], content["width"]) == ("bert", None, 12, 768)


def test_info_as_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "info", "minilm")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert status == 0
    assert (rows["family"], rows["parameters"], rows["tokenizer"].lower()) == ("bert", "22,713,216", "wordpiece")
