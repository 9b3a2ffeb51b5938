"""`regard pretrain` on the command line; what it learns is tested with the training."""

import json
from pathlib import Path

import pytest

from regard import cli

TEXT = "the old man went to the market.\nthe market was closed.\n\nthe sea was calm.\na boat came in.\n\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT * 12, encoding="utf-8")
    return path


def test_scores_are_on_stdout_and_what_was_chosen_on_stderr(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["pretrain", str(corpus), "--preset", "tiny-bert", "--steps", "3", "--out", str(tmp_path / "run")]
    assert cli.main([*argv, "--objective", "mlm+nsp", "--json"]) == 0
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    assert list(content) == ["task", "rows", "scores", "baseline", "new_heads", "seconds", "folder"]
    assert set(content["scores"]) == {"masked_accuracy", "perplexity", "nll", "next_accuracy"}
    assert set(content["scores"]["perplexity"]) == {"value", "low", "high"}
    assert set(content["baseline"]) == {"masked_accuracy", "perplexity", "next_accuracy"}
    assert "objective: mlm+nsp, " in captured.err
    assert "chosen: lr " in captured.err
    assert "step 3 of 3: masked_accuracy " in captured.err
    assert cli.main([*argv, "--steps", "1", "--overwrite"]) == 0
    assert "unigram baseline" in capsys.readouterr().out
    assert cli.main([*argv, "--dev-fraction", "0", "--overwrite"]) == 0
    assert "none: no validation text" in capsys.readouterr().out


def test_the_error_names_a_preset_with_too_small_a_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "letters.txt"
    path.write_text("".join(f"{chr(0x4E00 + number)} and then\n\n" for number in range(200)), encoding="utf-8")
    assert cli.main(["pretrain", str(path), "--preset", "tiny-bert", "--out", str(tmp_path / "run")]) == 1
    err = capsys.readouterr().err
    assert 'the vocabulary of preset "tiny-bert" is too small for the characters of this text, which need 2' in err
    assert "Use a larger preset, or your own vocabulary: regard tokenizer FILE" in err
