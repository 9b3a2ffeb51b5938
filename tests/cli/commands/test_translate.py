"""`regard translate` from the outside."""

import json

import pytest

from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.cli import main
from regard.evaluation.evaluate import evaluate
from regard.predict import load
from regard.text.learn import train_tokenizer_from_texts
from regard.training.from_scratch.preset_model import with_special_token_ids

TEXTS = ["a b c d e f g h i j k l m n o p", "good morning to you", "where are you going", "the dog sleeps"] * 3


@pytest.fixture(scope="module", params=["tiny-transformer", "tiny-gru"])
def folder(request, tmp_path_factory):
    where = tmp_path_factory.mktemp("models") / request.param
    words = train_tokenizer_from_texts(TEXTS, kind="char", size=60)
    checkpoint = with_special_token_ids(from_preset(request.param, vocabulary=words.size), words)
    write_folder(where, checkpoint, write_extra_files=words.save)
    return where


def test_each_text_is_translated_in_order(folder, capsys, tmp_path):
    (tmp_path / "texts.txt").write_text("good morning\nthe dog\n")
    assert main(["translate", str(folder), "--input", str(tmp_path / "texts.txt"), "--json", "--device", "cpu"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["text"], row["rank"], row["windows"]) for row in rows] == [("good morning", 1, 1), ("the dog", 1, 1)]
    assert main(["translate", str(folder), "good morning", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.strip() == rows[0]["translation"].strip()


def test_predict_says_it_too(folder, capsys):
    (answer,) = load(folder, device="cpu").predict(["good morning"])
    assert main(["predict", str(folder), "good morning", "--device", "cpu"]) == 0
    content = answer.json()
    assert capsys.readouterr().out == f"{content['translation'] or '(nothing)'}  {content['score']:.3f}  good morning\n"


def test_several_of_each(folder, capsys):
    argv = ["translate", str(folder), "good morning", "--beams", "3", "--best", "2", "--json", "--device", "cpu"]
    assert main(argv) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["rank"] for row in rows] == [1, 2]
    assert rows[0]["score"] >= rows[1]["score"]
    assert main([*argv[:5], "--best", "4"]) == 2
    assert "add --beams 4" in capsys.readouterr().err


def test_alignments(folder, capsys):
    status = main(["translate", str(folder), "the dog", "--alignment", "--device", "cpu"])
    captured = capsys.readouterr()
    if folder.name == "tiny-gru":
        assert status == 1
        assert "no attention" in captured.err
    else:
        assert status == 0
        assert len(captured.out.splitlines()) > 2


def test_evaluated_with_beams(folder, capsys, tmp_path):
    """What is scored is what `translate` says with as many beams, and signatures say how."""
    rows = [("good morning to you", "where are you"), ("the dog", "the dog sleeps"), ("go", "going there")]
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps({"source": one, "target": two}) + "\n" for one, two in rows))
    model = load(folder, device="cpu")
    result = evaluate(model, data, beams=3, output=tmp_path / "a.jsonl", batch_tokens=1)
    lines = [json.loads(line)["translation"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines == [model.translate([text], beams=3)[0] for text, _ in rows]
    assert set(result.signatures) == {"bleu", "chrf", "bleu_lowercase"} == set(result.scores)
    greedy = evaluate(model, data)
    assert greedy.loss == pytest.approx(result.loss, rel=1e-5)
    argv = ["evaluate", str(folder), str(data), "--device", "cpu"]
    assert main([*argv, "--beams", "3"]) == 0
    table = capsys.readouterr().out
    assert f"bleu: {result.signatures['bleu']}" in table
    assert "tok:13a" in table
    assert main([*argv, "--beams", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signatures"] == result.signatures
    assert main([*argv, "--beams", "0"]) == 1
    assert "beams" in capsys.readouterr().err
    assert main([*argv, "--length-penalty", "0"]) == 1
    assert "--length-penalty was given, but it needs --beams above 1" in capsys.readouterr().err


def test_length_penalty(folder, capsys, tmp_path):
    """A low penalty gives shorter translations than a high one, in both commands."""
    model = load(folder, device="cpu")
    low, high = (model.translate(["good morning"], beams=3, length_penalty=value)[0] for value in (0.0, 3.0))
    assert len(low) <= len(high)
    data = tmp_path / "pairs.jsonl"
    data.write_text(json.dumps({"source": "good morning", "target": "the dog"}) + "\n")
    for penalty, expected in (("0", low), ("3", high)):
        options = ["--beams", "3", "--length-penalty", penalty, "--device", "cpu"]
        assert main(["translate", str(folder), "good morning", *options]) == 0
        assert capsys.readouterr().out == f"{expected}\n"
        assert main(["evaluate", str(folder), str(data), *options, "--output", str(tmp_path / "a.jsonl")]) == 0
        assert json.loads((tmp_path / "a.jsonl").read_text())["translation"] == expected
        capsys.readouterr()


def test_alignments_as_a_picture(folder, capsys, tmp_path):
    messages = ["translate", str(folder), "the dog", "good morning", "--device", "cpu", "--alignment-plot"]
    status = main([*messages, str(tmp_path / "seen.png")])
    if folder.name == "tiny-gru":
        assert (status, "no attention" in capsys.readouterr().err) == (1, True)
        return
    assert status == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert (tmp_path / "seen.png").read_bytes().startswith(b"\x89PNG")
    for name, exit, message in (("seen.txt", 2, "ends in .png"), ("no/seen.png", 1, "does not exist. Make it first")):
        assert main([*messages, str(tmp_path / name)]) == exit
        assert message in capsys.readouterr().err


def test_beams_and_texts_that_cannot_be(folder, capsys, tmp_path):
    assert main(["translate", str(folder), "good morning", "--beams", "0"]) == 1
    assert "beams must be a whole number of at least 1, not 0" in capsys.readouterr().err
    (tmp_path / "texts.txt").write_text("good morning\n\nthe dog\n")
    assert main(["translate", str(folder), "--input", str(tmp_path / "texts.txt"), "--device", "cpu"]) == 1
    err = capsys.readouterr().err
    assert "texts.txt line 2" in err
    assert "empty text" in err
