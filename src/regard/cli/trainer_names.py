"""Flags under the names that users of transformers' Trainer know them by, said in ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regard.cli.terminal import print_error
from regard.training.settings import NOT_NEEDED, OLD_NAMES, trainer_value

# Flags of the command itself, beside those of `OLD_NAMES`.
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


def translate_flags(given: Sequence[str]) -> list[str]:
    """The arguments in our names; what was changed is said on stderr."""
    rest, place = [], 0
    while place < len(given):
        word = given[place]
        place += 1
        name, equals, value = word.removeprefix("--").partition("=")
        plain = name.replace("-", "_")
        if not word.startswith("--") or plain not in {*OWN, *OLD_NAMES, *NOT_NEEDED}:
            rest.append(word)
            continue
        takes = plain not in (*BARE, *SWITCHES)
        follows = given[place] if place < len(given) else None
        if not equals and follows is not None and (takes or follows.lower() in ("true", "false")):
            value, equals = follows, "="
            place += 1
        rest += _ours(name, plain, value if equals else None)
    return rest


def _ours(name: str, plain: str, value: str | None) -> list[str]:
    if plain in NOT_NEEDED:
        _say(f"--{name} is not needed: {SETTING.sub(_flag, NOT_NEEDED[plain])}.")
        return []
    ours = OWN.get(plain, OLD_NAMES.get(plain, ""))
    flag = f"--{ours.replace('_', '-')}" if ours else "DATA, without a flag,"
    if plain != ours:
        _say(f"--{name} is called {flag} here.")
    if plain in SWITCHES:
        on = value is None or value.lower() != "false"
        if ours == "compile":
            return [flag, "yes" if on else "no"]
        return [flag] if on else []
    if not ours:
        return [] if value is None else [value]
    return [flag] if value is None else [flag, trainer_value(ours, value)]


def _flag(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')} {found[2]}"


def _say(words: str) -> None:
    print_error(words)
