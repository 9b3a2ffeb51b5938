"""`regard predict` and `regard fill`: answers in order, whole files, little memory."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests import fork_server
from tests.cli.helpers import Capture, run

import regard
from regard.errors import DataError
from regard.predict.batch.rows import file_rows
from regard.text.learn import train_tokenizer_from_texts

TEXTS = ["lovely and warm", "cold and dull", "the best of the year"]


def test_answers_as_json_are_those_of_python(capsys: Capture, trained: Path) -> None:
    status, out, err = run(capsys, "predict", trained, *TEXTS, "--json", "--device", "cpu")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert rows == [answer.json() for answer in regard.load(trained, device="cpu").predict(TEXTS)]
    assert set(rows[0]) == {"label", "score", "scores", "truncated", "windows"}


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
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    predicted = "predicted_label" if name == "texts.csv" else "label"
    assert [row[predicted] for row in rows] == [
        answer.json()["label"] for answer in regard.load(trained).predict(TEXTS)
    ]
    assert [row["text"] for row in rows] == TEXTS
    assert {row.get("id") for row in rows} == ({4} if name == "texts.jsonl" else {None})
    assert {row["label"] for row in rows} == {"nobody knows"} or name != "texts.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["answers.jsonl", name])


def test_words_with_tags_are_texts_for_a_tagger(tmp_path: Path) -> None:
    tagged, plain = tmp_path / "tagged.txt", tmp_path / "plain.txt"
    tagged.write_text("Ida B-PER\nWells I-PER\ncame O\n\nIt O\nrained O\n")
    plain.write_text("Ida Wells came\nIt rained\n")
    assert [row.item.text for row in file_rows(str(tagged), "tag")] == ["Ida Wells came", "It rained"]
    assert [row.item.text for row in file_rows(str(plain), "tag")] == ["Ida Wells came", "It rained"]
    assert next(file_rows(str(tagged), "classify")).item.text == "Ida B-PER"


def test_a_table_by_any_name_needs_its_format(tmp_path: Path) -> None:
    table, plain = tmp_path / "rows.dat", tmp_path / "plain.txt"
    table.write_text('text,label\n"a, b",yes\n')
    plain.write_text("Hello, you\nAnd, you\n")
    assert next(file_rows(str(table), "classify", format="csv")).item.text == "a, b"
    assert next(file_rows(str(table), "classify", format="lines")).item.text == "text,label"
    with pytest.warns(UserWarning, match="one text per line, but looks like csv with the columns text, label; use"):
        assert next(file_rows(str(table), "classify")).item.text == "text,label"
    assert next(file_rows(str(plain), "classify")).item.text == "Hello, you"


def test_a_table_on_stdin_is_read_by_line_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(content: str) -> list[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        return [row.item.text for row in file_rows("-", "classify")]

    with pytest.warns(UserWarning, match="stdin is read one text per line, but looks like csv with the columns text"):
        assert rows("text,label\nfine,yes\n") == ["text,label", "fine,yes"]
    for content, looks in (
        ('{"text": "fine"}\n', "jsonl with the columns text; use --format jsonl"),
        ("fine\tyes\nbad\tno\n", "tsv with 2 columns; use --format tsv"),
        ("Text\nfine\n", "csv with one column"),
    ):
        with pytest.warns(UserWarning, match=f"one text per line, but looks like {looks}"):
            assert rows(content) == content.splitlines()
    assert rows("Hello, you\nAnd, you\n") == ["Hello, you", "And, you"]
    many = [f"line {number}, of many" for number in range(20_000)]
    assert rows("\n".join(many)) == many


def test_columns_make_a_table_of_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(columns: dict[str, str], content: str = 'a,b\nfine,yes\n"so, so",no\n') -> list[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        return [row.item.text for row in file_rows("-", "classify", columns=columns)]

    assert rows({"text": "a"}) == ["fine", "so, so"]
    assert rows({"text": "b"}) == ["yes", "no"]
    assert rows({"text": "1"}, "1,fine\n2,bad\n") == ["fine", "bad"]
    with pytest.raises(DataError, match=r"stdin: is plain text and has no columns.*\(text=c\).*such as --format csv"):
        rows({"text": "c"})


def test_a_bad_line_leaves_the_old_answers(capsys: Capture, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("one\n  \nthree\n")
    (tmp_path / "answers.jsonl").write_text("from before")
    argv = ("predict", trained, "--input", tmp_path / "texts.txt", "--output", tmp_path / "answers.jsonl")
    status, out, err = run(capsys, *argv)
    assert (status, out) == (1, "")
    assert "texts.txt line 2" in err
    assert (tmp_path / "answers.jsonl").read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "texts.txt"]


PAGE = "Ida Wells was born in 1862.\nShe went to Memphis and wrote for a paper there.\n"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that answers questions, badly."""
    words = train_tokenizer_from_texts([PAGE, "where who"] * 5, kind="wordpiece", size=50)
    model = regard.create("tiny-bert", tokenizer=words, heads={"span": 2}, device="cpu")
    return model.save(tmp_path_factory.mktemp("reader") / "model")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("page.txt").write_text(PAGE)
    return Path("page.txt")


def test_a_file_is_no_context(capsys: Capture, reader: Path, page: Path) -> None:
    status, out, err = run(capsys, "predict", reader, "where?", "page.txt")
    assert (status, out) == (2, "")
    assert '"page.txt" is a file' in err
    assert "--context page.txt" in err
    assert "--literal" in err
    status, out, _ = run(capsys, "predict", reader, "where?", "page.txt", "--literal", "--json")
    assert status == 0
    assert json.loads(out)["answer"] in "page.txt"


def test_a_context_from_a_file(capsys: Capture, reader: Path, page: Path) -> None:
    questions = ["where?", "who was born?"]
    expected = [
        answer.json() for answer in regard.load(reader, device="cpu").predict([(one, PAGE) for one in questions])
    ]
    status, out, _ = run(capsys, "predict", reader, *questions, "--context", "page.txt", "--json")
    assert (status, [json.loads(line) for line in out.splitlines()]) == (0, expected)
    assert PAGE[expected[0]["start"] : expected[0]["end"]] == expected[0]["answer"]


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("asked.txt", "where?\nwho was born?\n", []),
        ("asked.csv", "nr,question\n7,where?\n8,who was born?\n", []),
        ("asked.csv", "nr,Question\n7,where?\n8,who was born?\n", []),
        ("asked.csv", "nr,what\n7,where?\n8,who was born?\n", ["--columns", "question=what"]),
        ("asked.jsonl", '{"nr": 7, "text": "where?"}\n{"nr": 8, "text": "who was born?"}\n', []),
    ],
)
def test_many_questions_about_one_file(
    capsys: Capture, reader: Path, page: Path, name: str, content: str, more: list[str]
) -> None:
    Path(name).write_text(content)
    argv = ["--input", name, "--context", page, "--output", "out.csv", *more]
    assert run(capsys, "predict", reader, *argv)[0] == 0
    questions = [("where?", PAGE), ("who was born?", PAGE)]
    expected = [answer.json() for answer in regard.load(reader, device="cpu").predict(questions)]
    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["answer"], row["start"]) for row in rows] == [(one["answer"], str(one["start"])) for one in expected]
    assert "context" not in rows[0]
    assert [row.get("nr") for row in rows] == ([None, None] if name == "asked.txt" else ["7", "8"])


@pytest.mark.parametrize("command", ["predict", "embed", "generate", "translate"])
def test_texts_that_are_file_names_are_refused(capsys: Capture, trained: Path, page: Path, command: str) -> None:
    status, _, err = run(capsys, command, trained, "a text", "./page.txt")
    assert status == 2
    assert '"./page.txt" is a file' in err
    run(capsys, command, trained, "x" * 5000, "--literal")
    assert "is a file" not in capsys.readouterr().err


def test_the_format_is_that_of_the_name(capsys: Capture, trained: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    source = tmp_path / "in.csv"
    source.write_text('id,text,score\n1,"warm, and ""lovely""",x\n2,"cold\nand dull",y\n')
    for name in ("out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.other"):
        status, _, err = run(capsys, "predict", trained, "--input", source, "--output", tmp_path / name)
        assert status == 0
        assert "the input has a column score, so the predicted one is called predicted_score." in err
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert list(lines[0]) == ["id", "text", "score", "label", "predicted_score", "scores", "truncated", "windows"]
    assert [line["id"] for line in lines] == ["1", "2"]
    assert (tmp_path / "out.other").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist() == [
        {**line, "scores": {"bad": line["scores"]["bad"], "good": line["scores"]["good"]}} for line in lines
    ]
    for name, delimiter in (("out.csv", ","), ("out.tsv", "\t")):
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter=delimiter))
        assert [row["text"] for row in rows] == [line["text"] for line in lines]
        assert [float(row["predicted_score"]) for row in rows] == [line["predicted_score"] for line in lines]
        assert json.loads(rows[0]["scores"]) == lines[0]["scores"]


def test_standard_input_keeps_its_texts(trained: Path, tmp_path: Path) -> None:
    argv = ("-m", "regard.cli", "predict", trained, "--input", "-", "--output", tmp_path / "out.csv")
    fork_server.run(*argv, input="warm\ndull\n", check=True)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == ["warm", "dull"]


def test_answers_stream(trained: Path) -> None:
    """The first answers are there long before the last text is asked for."""
    texts_read = 0

    def endless() -> object:
        nonlocal texts_read
        while True:
            texts_read += 1
            yield f"warm and lovely {texts_read}"

    model = regard.load(trained, device="cpu").answers(endless())  # type: ignore[arg-type]  # an iterator of texts
    assert [next(model).json()["label"] for _ in range(3)] == ["good"] * 3
    assert texts_read <= 2049


def test_every_kind_of_answer_is_a_line_for_reading() -> None:
    """No answer of a task is printed as raw JSON."""
    from regard.tasks.answer import SpanAnswer
    from regard.tasks.classify import LabelAnswer, LabelsAnswer, NumberAnswer
    from regard.tasks.embed import SimilarityAnswer
    from regard.tasks.tag import EntitiesAnswer, WordsAnswer

    answers = [
        LabelAnswer(label="a", scores={"a": 1.0}),
        LabelsAnswer(scores={"a": 0.1}),
        NumberAnswer(value=0.5),
        SimilarityAnswer(similarity=0.85),
        EntitiesAnswer(),
        WordsAnswer(),
        SpanAnswer(),
    ]
    assert [answer for answer in answers if "{" in answer.display()] == []
    assert answers[3].display().strip() == "0.8500"
