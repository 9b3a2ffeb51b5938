"""Errors name settings as they are called where they were given: in Python by name, on the command line by flag."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from regard import cli
from regard.errors import DataError, FolderError, InputError, RegardError, setting
from regard.generate.settings import DEFAULTS, DecodingSettings
from regard.training.settings import Lora, Settings

ROOT = Path(__file__).parents[1]


def test_a_setting_is_named_twice() -> None:
    error = InputError(f"{setting('dev_fraction')} is 2, expected a share.")
    assert str(error) == "dev_fraction is 2, expected a share."
    assert error.with_flags == "--dev-fraction is 2, expected a share."
    both = InputError(f"{setting('epochs', 2.0)} and {setting('preset', 'x')} and {setting('slide', True)}")
    assert str(both) == "epochs=2 and preset='x' and slide=True"
    assert both.with_flags == "--epochs 2 and --preset x and --slide"


@pytest.mark.parametrize("kind", [RegardError, InputError, FolderError, DataError])
def test_every_kind_of_error_does_it(kind: type[RegardError]) -> None:
    error = kind(f"{setting('batch_tokens')} is 0")
    assert str(error).startswith("batch_tokens is 0")
    assert error.with_flags.startswith("--batch-tokens is 0")
    assert str(pickle.loads(pickle.dumps(error))).startswith("batch_tokens is 0")


def test_the_parts_of_a_data_error_have_no_marks() -> None:
    error = DataError(f"has no {setting('columns')}", fix=f"Use {setting('format', 'csv')}.")
    assert (error.message, error.fix) == ("has no columns", "Use format='csv'.")
    assert error.with_flags == "has no --columns. Use --format csv."


def test_values_of_a_user_cannot_break_a_message() -> None:
    value = "a\x02b\x1fc\x03d" + "x" * 500
    error = InputError(f"{setting('task', value)} was given.")
    assert "\x02" not in str(error) + error.with_flags
    assert error.with_flags.endswith(" was given.")
    assert len(error.with_flags) < 120


def flags_of(settings: Any, prefix: str = "") -> set[str]:
    result = set()
    for name, kind in get_type_hints(settings).items():
        if dataclasses.is_dataclass(kind):
            result |= flags_of(kind, "" if name == "settings" else f"{prefix}{name}.")
        else:
            result.add(f"{prefix}{name}")
    return result


FLAGS = {name for command in cli.COMMANDS.values() for name in flags_of(command.arguments)}


def marked() -> list[tuple[str, str]]:
    """Every name that is written in the code as setting("name")."""
    results = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "setting":
                continue
            if isinstance(node.args[0], ast.Constant) and path.name != "errors.py":
                results.append((path.name, str(node.args[0].value)))
    return results


def test_every_marked_name_is_a_flag() -> None:
    assert marked()
    assert [(file, name) for file, name in marked() if name not in FLAGS and name not in ("lora", "model")] == []


# A value that is out of range for each setting of a training. Choices and types are the parser's own, below.
BAD = {
    "epochs": "0",
    "steps": "0",
    "lr": "-1",
    "batch_size": "0",
    "batch_tokens": "0",
    "micro_batch_tokens": "-3",
    "warmup": "-1",
    "weight_decay": "-0.1",
    "max_grad_norm": "nan",
    "adam_beta1": "1",
    "adam_beta2": "2",
    "adam_eps": "0",
    "layerwise_lr_decay": "0",
    "label_smoothing": "1",
    "rdrop": "-1",
    "rdrop_start": "1",
    "repeats": "0",
    "context": "-1",
    "beams": "0",
    "dropout": "1.5",
    "window": "0",
    "overlap": "1",
    "dev_fraction": "1",
    "patience": "-1",
    "eval_every": "-1",
    "save_every": "-1",
    "log_every": "0",
    "max_bad_steps": "0",
    "seed": "-1",
    "lora.rank": "-1",
    "lora.alpha": "0",
    "lora.dropout": "1",
    "model.layers": "0",
    "model.decoder_layers": "0",
    "model.width": "0",
    "model.ffn_width": "-1",
    "model.max_tokens": "0",
    "model.activation": "wavy",
    "model.attention.heads": "0",
    "model.attention.kv_heads": "-2",
    "model.attention.head_width": "0",
    "model.attention.window": "-1",
    "device": "xpu",
    "log_to": "paper",
}
FREE = {
    "freeze",
    "prefix",
    "tensorboard",
    "fsdp",
    "gradient_checkpointing",
    "explainable",
}  # any text, or true and false
CHOICES = {"schedule", "class_balance", "head_init", "pooling", "refit", "vocabularies", "dtype"}
CHOICES |= {"compile"}
CHOICES |= {f"model.{name}" for name in ("positions", "norm", "norm_first", "cell")}
CHOICES |= {"model.attention.score", "model.attention.select"}


def test_every_setting_of_a_training_is_in_the_table() -> None:
    assert flags_of(Settings) == {*BAD, *FREE, *CHOICES}


def said_of(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(argv) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return " ".join(captured.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command in ("train", "pretrain") for name in BAD],
)
def test_a_value_out_of_range_names_the_flag(
    command: str, name: str, reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = f"--{name.replace('_', '-')}"
    argv = [command, str(reviews_csv), "--preset", "tiny-bert", "--out", str(tmp_path / "run"), flag, BAD[name]]
    message = said_of(argv, capsys)
    assert flag in message
    assert BAD[name] in message
    assert "expected" in message or "Use" in message
    assert f"regard: {flag} " in message  # not as Python calls it
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "name", ["label_smoothing", "class_balance", "vocabularies", "prefix", "context", "rdrop", "beams"]
)
def test_settings_without_meaning_are_refused_by_pretrain(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    flag = f"--{name.replace('_', '-')}"
    assert flag in said_of(["pretrain", "corpus.txt", "--preset", "tiny-bert", "--out", "run", flag, "x"], capsys)


NUMBERS = [name for name in BAD if name != "device"]


@pytest.mark.parametrize("name", [*NUMBERS, *sorted(CHOICES)])
def test_a_value_of_a_wrong_type_names_the_flag(
    name: str, reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = f"--{name.replace('_', '-')}"
    message = said_of(["train", str(reviews_csv), "--out", str(tmp_path / "run"), flag, "many"], capsys)
    assert flag in message
    assert "many" in message
    assert any(words in message for words in ("expected a", "expected yes or no", "Expected one of"))


def test_settings_that_exclude_each_other_are_flags_too(reviews_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", str(reviews_csv), "--out", "x", "--epochs", "2", "--steps", "3"]
    assert "--epochs 2 and --steps 3 were both given" in said_of(argv, capsys)
    argv = ["train", str(reviews_csv), "--out", "x", "--resume", "--overwrite"]
    assert "--resume and --overwrite were both given" in said_of(argv, capsys)


def test_values_of_pretrain(reviews_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["pretrain", str(reviews_csv), "--preset", "tiny-bert", "--out", str(tmp_path / "run")]
    for flag, value in (
        ("--mask-rate", "2"),
        ("--mask-unit", "line"),
        ("--objective", "rtd"),
        ("--class-balance", "weights"),
    ):
        assert flag in said_of([*argv, flag, value], capsys)


BAD_DECODING = {
    "max_tokens": "0",
    "min_tokens": "-1",
    "temperature": "0",
    "top_k": "0",
    "top_p": "1.5",
    "min_p": "-1",
    "beams": "0",
    "best": "0",
    "length_penalty": "nan",
    "repetition_penalty": "0",
    "no_repeat": "-1",
    "stop": "",
    "banned": "",
    "forced": "",
    "early_stop": "perhaps",
}


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import regard

    folder = tmp_path_factory.mktemp("writer")
    text = folder / "text.txt"
    text.write_text("The sea was calm.\n\nA boat came in.\n\n" * 20)
    regard.pretrain(
        [text], objective="causal", preset="tiny-gpt2", steps=1, out=folder / "run", dev_fraction=0, device="cpu"
    )
    return folder / "run"


def test_every_setting_of_generate_names_its_flag(writer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"model", "texts", "interactive", "device", "dtype", "json", "slide", "seed", "literal"}
    assert {*BAD_DECODING} == flags_of(cli.COMMANDS["generate"].arguments) - own
    assert {*BAD_DECODING, "sample", "seed", "slide", "constraint"} == set(DEFAULTS)
    for name, value in BAD_DECODING.items():
        flag = f"--{name.replace('_', '-')}"
        message = said_of(["generate", str(writer), "The sea", "--device", "cpu", flag, value], capsys)
        assert flag in message, message
        assert value in message, message
    message = said_of(["generate", str(writer), "a", "--beams", "3", "--top-p", "0.5"], capsys)
    assert "--beams 3 and --top-p 0.5 contradict each other" in message


def test_python_names_stay_in_python() -> None:
    with pytest.raises(InputError, match=r"^dev_fraction is 2, expected"):
        Settings(dev_fraction=2)
    with pytest.raises(InputError, match=r"^lora\.rank is -1, expected"):
        Settings(lora=Lora(rank=-1))
    with pytest.raises(InputError, match=r"^top_p must be a number above 0"):
        DecodingSettings(top_p=0)
