"""Exports of annotation tools from check to predict: doccano, spaCy, Label Studio, Prodigy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard import cli

NAMES = ("Ada", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hedy", "Ivo", "Jo", "Kai", "Lena")
TOWNS = ("Oslo", "Bergen", "Turku", "Lund")


def sentences() -> list[tuple[str, list[tuple[int, int, str]]]]:
    results = []
    for number, name in enumerate(NAMES * 2):
        town = TOWNS[number % len(TOWNS)]
        command = "went" if number < len(NAMES) else "came"
        text = f"{name} {command} to {town} today"
        start = text.index(town)
        results.append((text, [(0, len(name), "PER"), (start, start + len(town), "LOC")]))
    return results


def doccano(path: Path) -> None:
    rows = [{"id": n, "text": text, "label": spans} for n, (text, spans) in enumerate(sentences())]
    path.write_text("\n".join(map(json.dumps, rows)))


def spacy(path: Path) -> None:
    path.write_text(json.dumps([(text, {"entities": spans}) for text, spans in sentences()]))


def label_studio(path: Path) -> None:
    def result(text: str, span: tuple[int, int, str]) -> dict[str, Any]:
        value = {"start": span[0], "end": span[1], "text": text[slice(*span[:2])], "labels": [span[2]]}
        return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}

    tasks = [
        {"id": n, "data": {"text": text}, "annotations": [{"result": [result(text, span) for span in spans]}]}
        for n, (text, spans) in enumerate(sentences())
    ]
    path.write_text(json.dumps(tasks, indent=1))


def prodigy(path: Path) -> None:
    rows = [
        {"text": text, "spans": [{"start": s, "end": e, "label": n} for s, e, n in spans], "answer": "accept"}
        for text, spans in sentences()
    ]
    rows.append({"text": "Oslo Oslo", "spans": [], "answer": "reject"})
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.jsonl", doccano), ("a.json", spacy), ("b.json", label_studio), ("b.jsonl", prodigy)],
    ids=["doccano", "spacy", "label-studio", "prodigy"],
)
def test_an_export_is_checked_trained_evaluated_and_predicted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    write: Callable[[Path], None],
) -> None:
    monkeypatch.setattr("regard.training.output.write_run.draw_curves", lambda *_, **__: None)
    data, out = tmp_path / name, tmp_path / "run"
    write(data)
    rows = len(data.read_text().splitlines()) if name.endswith("l") else 24
    assert cli.main(["check", str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["task"], report["rows"], report["labels"]) == ("tag", 24, {"LOC": 24, "PER": 24})
    settings = ["--preset", "tiny-bert", "--epochs", "1", "--device", "cpu", "--lr", "1e-3"]
    assert cli.main(["train", str(data), "--out", str(out), *settings, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["task"] == "tag"
    assert ("excluded rows: 1 rejected" in captured.err) == (write is prodigy)
    labels = json.loads((out / "run.json").read_text())["task_settings"]["labels"]
    assert sorted(labels) == ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
    assert cli.main(["evaluate", str(out), str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 24
    assert cli.main(["predict", str(out), "--input", str(data), "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == rows
