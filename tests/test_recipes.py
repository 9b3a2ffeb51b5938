"""The commands of docs/recipes.md and docs/tutorial.md run as they stand, on small files, with short trainings."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from regard import cli

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "recipes.md"
TUTORIAL = DOCS / "tutorial.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def table(path: str, header: Sequence[str], rows: Iterable[Sequence[object]], **settings: Any) -> None:
    encoding = settings.pop("encoding", "utf-8")
    with Path(path).open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, **settings)
        writer.writerow(header)
        writer.writerows(rows)


def mails() -> None:
    kinds = {
        "order": ("When will order {} arrive in München?", 20),
        "legal": ("Mein Anwalt schreibt Ihnen, Fall {}.", 5),
    }
    rows = [(n, text.format(n), label) for label, (text, count) in kinds.items() for n in range(count)]
    for name in ("mails", "mails-test", "new-mails"):
        table(f"{name}.csv", ("id", "mail", "category"), rows, encoding="cp1252", delimiter=";")


def entities() -> None:
    rows = [(f"Lena Vogt met Bank {number}.", [[0, 9, "PER"], [14, 18, "ORG"]]) for number in range(20)]
    lines = [json.dumps({"id": 1, "text": text, "label": spans}) for text, spans in rows]
    Path("doccano.jsonl").write_text("\n".join(lines))
    Path("spacy.json").write_text(json.dumps([[text, {"entities": spans}] for text, spans in rows]))


def questions() -> None:
    Path("page.txt").write_text("The lighthouse was built in 1847 by Odile Brandt. It is 41 metres high.\n")


def tickets() -> None:
    rows = [(f"charged twice, case {n}", "billing, login" if n % 2 else "app") for n in range(20)]
    for name in ("tickets", "tickets-test"):
        table(f"{name}.csv", ("ticket", "tags"), rows)


def similar() -> None:
    rows = [(f"A man plays a guitar {n}.", f"Someone reads book {n}.", round(n / 4, 1)) for n in range(20)]
    table("pairs.csv", ("sentence1", "sentence2", "score"), rows)
    Path("manual.txt").write_text("The guarantee covers two years.\nA blinking red light means no water.\n")


def adaptation() -> None:
    Path("domain.txt").write_text("The bogie frame cracked.\nInspect the pantograph strip.\n\n" * 20)
    rows = [(f"Shift log {n}: the {('bogie', 'brake')[n % 2]} failed", ("bogie", "brake")[n % 2]) for n in range(20)]
    for name in ("faults", "faults-test"):
        table(f"{name}.csv", ("text", "label"), rows)


FILES: list[Callable[[], None]] = [mails, entities, questions, tickets, similar, adaptation]


def commands() -> list[list[str]]:
    """Of each section, in order."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [
        "".join(re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)).splitlines() for part in sections
    ]


def test_every_recipe_is_run() -> None:
    assert len(commands()) == len(FILES)
    assert all(lines for lines in commands())


@pytest.mark.slow
@pytest.mark.minilm
@pytest.mark.parametrize("number", range(len(FILES)), ids=[files.__name__ for files in FILES])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_recipe(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILES[number]()
    for line in commands()[number]:
        words = shlex.split(line)[1:]
        short = ["--steps", "1"] if words[0] in ("train", "pretrain") else []
        if words[1:2] in (["mails.csv"], ["faults.csv"]) and words[0] == "train":
            short += ["--head-init", "random"]  # the tutorial starts from the contrastive head
        assert cli.main([*words, *short]) == 0, line


@pytest.mark.slow
@pytest.mark.minilm
def test_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks in order."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for kind, block in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(block, "tutorial", "exec"), names)
            continue
        for line in block.splitlines():
            words = shlex.split(line)[1:]
            short = ["--steps", "1"] if words[0] == "train" else []
            assert cli.main([*words, *short]) == 0, line
    assert Path("confusion.png").exists()
    assert len(Path("answers.csv").read_text(encoding="utf-8").splitlines()) == 93
    assert "regard serve runs/messages" in TUTORIAL.read_text(encoding="utf-8")  # docs/serve.md starts one
