"""Flags of transformers' Trainer are understood."""

from __future__ import annotations

from tests.cli.helpers import Capture

from regard.cli.commands.train import parse
from regard.cli.flags.trainer_names import translate_flags


def test_flags_of_the_trainer_are_understood(capsys: Capture) -> None:
    old = (
        "--train_file d.csv --output_dir o --model_name_or_path minilm --learning_rate=2e-5 --num-train-epochs 3 "
        "--max_seq_length 128 --evaluation_strategy epoch --fp16 --load_best_model_at_end True --torch_compile False "
        "--gradient_checkpointing --overwrite_output_dir --seed 7 --lr_scheduler_type inverse_sqrt --push_to_hub False "
        "--optim adamw_torch"
    )
    argv = translate_flags(old.split())
    assert " ".join(argv) == (
        "d.csv --out o --start minilm --lr 2e-5 --epochs 3 --window 128 --compile no --gradient-checkpointing "
        "--overwrite --seed 7 --schedule sqrt"
    )
    err = capsys.readouterr().err
    assert "regard: --learning_rate is called --lr here." in err
    assert "--evaluation_strategy is not needed: validation runs once per epoch; --eval-every STEPS runs" in err
    result = parse(argv)
    assert (result.settings.lr, result.settings.window, result.overwrite) == (2e-5, 128, True)
