"""Flags of transformers' Trainer, translated to ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regard.cli.terminal import print_error
from regard.training.settings import NOT_NEEDED, OLD_NAMES, trainer_value

# Flags of the command itself, in addition to those of `OLD_NAMES`.
OWN = {
    "output_dir": "out",
    "model_name_or_path": "start",
    "model_name": "start",
    "train_file": "",
    "dataset": "",
    "validation_file": "dev",
    "eval_file": "dev",
    "overwrite_output_dir": "overwrite",
    "resume_from_checkpoint": "resume",
    "tokenizer_name": "tokenizer",
    "gradient_checkpointing": "gradient_checkpointing",  # the same name, but the Trainer's takes True or False
}
SWITCHES = ("overwrite_output_dir", "resume_from_checkpoint", "gradient_checkpointing", "torch_compile")
# Old flags without a value of their own.
BARE = (
    *("fp16", "bf16", "group_by_length", "load_best_model_at_end", "do_train", "do_eval", "disable_tqdm", "use_cpu"),
    *("no_cuda", "auto_find_batch_size", "remove_unused_columns", "full_determinism", "push_to_hub"),
)
SETTING = re.compile(r"\b([a-z_]+)=(\w+)")  # as Python writes it


def translate_flags(words: Sequence[str]) -> list[str]:
    """The arguments with our flags; changes are reported on stderr."""
    translated_words, index = [], 0
    while index < len(words):
        word = words[index]
        index += 1
        name, equals, value = word.removeprefix("--").partition("=")
        plain = name.replace("-", "_")
        if not word.startswith("--") or plain not in {*OWN, *OLD_NAMES, *NOT_NEEDED}:
            translated_words.append(word)
            continue
        has_value = plain not in (*BARE, *SWITCHES)
        following = words[index] if index < len(words) else None
        if not equals and following is not None and (has_value or following.lower() in ("true", "false")):
            value, equals = following, "="
            index += 1
        translated_words += _translate_flag(name, plain, value if equals else None)
    return translated_words


def _translate_flag(name: str, plain: str, value: str | None) -> list[str]:
    if plain in NOT_NEEDED:
        _print_note(f"--{name} is not needed: {SETTING.sub(_flag, NOT_NEEDED[plain])}.")
        return []
    ours = OWN.get(plain, OLD_NAMES.get(plain, ""))
    flag = f"--{ours.replace('_', '-')}" if ours else "DATA, without a flag,"
    if plain != ours:
        _print_note(f"--{name} is called {flag} here.")
    if plain in SWITCHES:
        on = value is None or value.lower() != "false"
        if ours == "compile":
            return [flag, "yes" if on else "no"]
        return [flag] if on else []
    if not ours:
        return [] if value is None else [value]
    return [flag] if value is None else [flag, trainer_value(ours, value)]


def _flag(match: re.Match[str]) -> str:
    return f"--{match[1].replace('_', '-')} {match[2]}"


def _print_note(words: str) -> None:
    print_error(words)
