"""The second training on all rows, validation rows too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from regard.errors import InputError, setting
from regard.training.defaults.recipes import MODEL_SETTINGS, default_refit
from regard.training.head_init.initializer import ProbeInitializer, computed_once, refits_head_only
from regard.training.head_init.mean_weights import MeanWeights
from regard.training.load_data import LabeledData
from regard.training.run import TrainingInputs


def with_refit(
    inputs: TrainingInputs,
    records: LabeledData,
    build: Callable[[LabeledData], TrainingInputs],
    mean: MeanWeights | None,
    *,
    device: torch.device,
    ranks: int,
) -> TrainingInputs:
    """The inputs with a second training on all rows, where there is one; with mean weights, in place of training.

    Similarity, which needs no labels, is learned once for both; so are vectors by a short contrastive training.
    """
    head_only = refits_head_only(inputs, device)

    def all_rows() -> TrainingInputs:
        whole = replace(records, train=[*records.train, *records.dev], dev=[])
        second = build(whole)
        if head_only and isinstance(second.initialize, ProbeInitializer):
            second = replace(second, initialize=replace(second.initialize, trained=inputs.model.checkpoint.network))
        same = {name: getattr(inputs.settings, name) for name in MODEL_SETTINGS}
        return replace(second, recipe=inputs.recipe, settings=replace(second.settings, **same))

    if mean is not None:
        return mean.in_place_of_training(inputs, all_rows)
    if not should_refit(inputs, records, device=device, ranks=ranks):
        return inputs
    if inputs.initialize is None or inputs.model.head_init != "similarity":
        return replace(inputs, refit=all_rows, head_only_refit=head_only)
    initialize = computed_once(inputs.initialize)
    return replace(inputs, initialize=initialize, refit=lambda: replace(all_rows(), initialize=initialize))


def should_refit(inputs: TrainingInputs, data: LabeledData, *, device: torch.device, ranks: int) -> bool:
    """Whether a second network is trained on all rows: on request, or by default where this takes little time."""
    refit, model = inputs.settings.refit, inputs.model
    if refit == "auto":
        rows, gpu = len(data.train) + len(data.dev), device.type == "cuda"
        single_texts = model.pretrained and inputs.task.probe == "default" and inputs.distillation is None
        short = default_refit(model.checkpoint.config, rows, probe=model.probe, gpu=gpu)
        return (model.probe or single_texts) and short and data.split_off and bool(data.dev) and ranks == 1
    if refit == "yes" and not data.dev:
        raise InputError(
            f"{setting('refit', 'yes')} was given, but there are no validation rows: all rows are trained on already. "
            "Leave it out."
        )
    if refit == "yes" and ranks > 1:
        raise InputError(f"{setting('refit', 'yes')} is not possible on {ranks} GPUs. Train on one, or leave it out.")
    return refit == "yes"
