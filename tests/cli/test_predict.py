"""`regard predict` and `regard fill`: answers in order, whole files, little memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import regard
from regard import cli
from regard.cli.predict import read_inputs

TEXTS = ["lovely and warm", "cold and dull", "the best of the year"]
Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *argv: object) -> tuple[int, str, str]:
    status = cli.main([str(one) for one in argv])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_answers_as_json_are_those_of_python(capsys: Capture, trained: Path) -> None:
    status, out, err = run(capsys, "predict", trained, *TEXTS, "--json", "--device", "cpu")
    said = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert said == [answer.json() for answer in regard.load(trained, device="cpu").predict(TEXTS)]
    assert set(said[0]) == {"label", "score", "scores", "truncated", "windows"}


def test_answers_for_reading(capsys: Capture, trained: Path) -> None:
    status, out, _ = run(capsys, "predict", trained, *TEXTS)
    assert status == 0
    for line, text in zip(out.splitlines(), TEXTS, strict=True):
        assert line.split()[0] in ("good", "bad")
        assert line.endswith(text)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("texts.txt", "".join(f"{text}\n" for text in TEXTS)),
        ("texts.csv", "text,label\n" + "".join(f"{text},nobody knows\n" for text in TEXTS)),
        ("texts.jsonl", "".join(json.dumps({"id": 4, "text": text}) + "\n" for text in TEXTS)),
    ],
)
def test_files_in_and_out(capsys: Capture, trained: Path, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    argv = ("predict", trained, "--input", tmp_path / name, "--output", tmp_path / "answers.jsonl", "--json")
    status, out, _ = run(capsys, *argv)
    assert status == 0
    assert json.loads(out) == {"rows": 3, "output": str(tmp_path / "answers.jsonl")}
    said = [json.loads(line)["label"] for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert said == [answer.json()["label"] for answer in regard.load(trained).predict(TEXTS)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["answers.jsonl", name])


def test_words_with_tags_are_texts_for_a_tagger(tmp_path: Path) -> None:
    tagged, plain = tmp_path / "tagged.txt", tmp_path / "plain.txt"
    tagged.write_text("Ida B-PER\nWells I-PER\ncame O\n\nIt O\nrained O\n")
    plain.write_text("Ida Wells came\nIt rained\n")
    assert [record.text for record in read_inputs(str(tagged), "tag")] == ["Ida Wells came", "It rained"]
    assert [record.text for record in read_inputs(str(plain), "tag")] == ["Ida Wells came", "It rained"]
    assert next(read_inputs(str(tagged), "classify")).text == "Ida B-PER"


def test_a_bad_line_leaves_the_old_answers(capsys: Capture, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("one\n  \nthree\n")
    (tmp_path / "answers.jsonl").write_text("from before")
    argv = ("predict", trained, "--input", tmp_path / "texts.txt", "--output", tmp_path / "answers.jsonl")
    status, out, err = run(capsys, *argv)
    assert (status, out) == (1, "")
    assert "texts.txt line 2" in err
    assert (tmp_path / "answers.jsonl").read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "texts.txt"]


def test_answers_stream(trained: Path) -> None:
    """The first answers are there long before the last text is asked for."""
    asked = 0

    def endless() -> object:
        nonlocal asked
        while True:
            asked += 1
            yield f"warm and lovely {asked}"

    found = regard.load(trained, device="cpu").answers(endless())  # type: ignore[arg-type]  # an iterator of texts
    assert [next(found).json()["label"] for _ in range(3)] == ["good"] * 3
    assert asked <= 2049


def test_a_model_without_a_task_says_what_it_can_do(capsys: Capture) -> None:
    status, _, err = run(capsys, "predict", "minilm", "a text")
    assert status == 1
    assert "this is a network without a task" in err
    assert "model.embed(texts)" in err


# fill


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory, reviews: Callable[..., list[tuple[str, str]]]) -> Path:
    from dataclasses import replace

    from regard.checkpoint.folder import write_folder
    from regard.checkpoint.source import from_preset
    from regard.text.learn import learn_from

    words = learn_from((text for text, _ in reviews(40)), kind="wordpiece", size=90)
    checkpoint = from_preset("tiny-bert", heads={"masked": 0, "next": 2}, vocabulary=words.size)
    folder = tmp_path_factory.mktemp("masked") / "model"
    write_folder(folder, replace(checkpoint), beside=words.save)
    return folder


def test_words_for_a_mask(capsys: Capture, masked: Path) -> None:
    status, out, err = run(capsys, "fill", masked, "a [MASK] film", "--top", "3")
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 3
    assert out.splitlines()[0].endswith(" film")


def test_words_for_several_masks(capsys: Capture, masked: Path) -> None:
    status, out, _ = run(capsys, "fill", masked, "a [MASK] film of the [MASK]", "--json")
    found = json.loads(out)
    assert status == 0
    assert [len(words) for words in found["masks"]] == [5, 5]
    assert set(found["masks"][0][0]) == {"word", "score", "text"}


def test_words_of_a_model_that_has_none(capsys: Capture, trained: Path) -> None:
    status, _, err = run(capsys, "fill", trained, "a [MASK] film")
    assert status == 1
    assert "no head for masked words" in err
    assert "model.predict(texts)" in err
