"""`regard generate`: what it prints, streams and asks for."""

import io
import json

import pytest
import tokenizers

from regard import cli
from regard.checkpoint.source import from_preset
from regard.cli.commands import generate as module
from regard.cli.commands.generate import GenerateCommand, settings_of
from regard.predict import Model
from regard.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random tiny GPT-2 whose tokens are single characters, the 100 from the space on."""
    characters = {chr(32 + number): number for number in range(100)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(characters, []))
    backend.decoder = tokenizers.decoders.Fuse()
    checkpoint = from_preset("tiny-gpt2", seed=0)
    for parameter in checkpoint.network.parameters():
        parameter.data *= 8.0
    return str(Model(checkpoint, Tokenizer(backend)).save(tmp_path_factory.mktemp("generate") / "gpt"))


def run(capsys, *argv):
    status = cli.main(["generate", *argv])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_settings_keep_their_names():
    settings = settings_of(GenerateCommand("m", ("a",), beams=0, top_p=0.5, early_stop="no", stop=("x",), slide=True))
    assert settings == {"beams": 0, "top_p": 0.5, "early_stop": False, "stop": ("x",), "slide": True}
    assert settings_of(GenerateCommand("m")) == {}


def test_text_json_and_table(folder, capsys):
    status, out, err = run(capsys, folder, "Once", "--max-tokens", "6")
    assert (status, len(out)) == (0, 7)
    assert err.count("\n") == 1
    assert "is untrained" in err
    status, options, _ = run(capsys, folder, "Once", "upon", "--max-tokens", "6", "--json")
    rows = [json.loads(line) for line in options.splitlines()]
    assert [row["prompt"] for row in rows] == ["Once", "upon"]
    assert rows[0]["text"] == out[:-1]
    assert set(rows[0]) == {"prompt", "rank", "text", "ids", "log_probs", "score", "finish_reason"}
    status, out, _ = run(capsys, folder, "Once", "--max-tokens", "6", "--beams", "3", "--best", "2")
    assert len(out.splitlines()) == 2


def test_a_terminal_sees_the_text_as_it_comes(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    pieces = []
    monkeypatch.setattr(module, "print", lambda *what, **how: pieces.append((what, how)), raising=False)
    run(capsys, folder, "Once", "--max-tokens", "6")
    assert len(pieces) > 3
    assert pieces[0][1] == {"end": "", "flush": True}
    assert pieces[-1] == ((), {})


def test_prompt_after_prompt(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Once\n\n" + "a" * 400 + "\nOnce\n"))
    status, out, err = run(capsys, folder, "--interactive", "--max-tokens", "6")
    lines = out.splitlines()
    assert (status, len(lines), lines[0]) == (0, 2, lines[1])
    assert "400 tokens" in err
