"""Settings that change nothing if the network is ready before the first training step."""

from __future__ import annotations

from regard.training.settings import Settings

OF_STEPS = (
    *("batch_tokens", "schedule", "warmup", "weight_decay", "max_grad_norm", "adam_beta1", "adam_beta2", "adam_eps"),
    *("layerwise_lr_decay", "label_smoothing", "rdrop", "explainable", "patience", "eval_every"),
)
OF_CONTRASTIVE_STEPS = ("lr", "batch_size")


def unused_settings(user_settings: Settings, *, contrastive: bool) -> list[str]:
    """The names of settings that the user gave for training steps, of which there are none.

    contrastive: whether there are contrastive steps, which have a learning rate and a batch size.
    """
    names = OF_STEPS if contrastive else (*OF_CONTRASTIVE_STEPS, *OF_STEPS)
    default = Settings()
    return [name for name in names if getattr(user_settings, name) not in (None, getattr(default, name))]
