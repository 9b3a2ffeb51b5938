"""What a training on labeled data says before its first step."""

from __future__ import annotations

from regard.baselines import Baseline
from regard.errors import pluralize
from regard.training.defaults.recipes import chosen_settings
from regard.training.defaults.unused import unused_settings
from regard.training.head_init.initializer import is_fitted, planned_contrastive, planned_similarity
from regard.training.initial_model import InitialModel
from regard.training.job import TrainingJob
from regard.training.load_data import LabeledData
from regard.training.pipeline import model_line
from regard.training.settings import Settings


def start_lines(
    data: LabeledData,
    user_settings: Settings,
    job: TrainingJob,
    start: str,
    model: InitialModel,
    baseline: Baseline | None,
) -> list[str]:
    """What the data was recognized as, and which settings were chosen, in words."""
    lines = [f"data: {data.reason}", f"rows: {_rows_line(data)}"]
    lines += [f"hint: {hint}" for hint in data.hints]
    lines += job.task.notes
    lines.append(model_line(job, start, pretrained=model.pretrained))
    device = next(job.network.parameters()).device
    similarity = planned_similarity(model, len(data.train), device)
    if similarity is not None and job.steps:
        first = f"first, the network learns how similar {similarity.pairs:,} pairs of these texts are"
        lines.append(f"similarity: {first}; --head-init random leaves this out")
    contrastive = planned_contrastive(model, len(data.train), user_settings, device)
    if contrastive is not None:
        texts = min(contrastive.texts, len(data.train))
        steps = f"{contrastive.repeats * contrastive.steps} steps of {texts} texts at {contrastive.lr:.2g}"
        first = f"{steps} make the vectors of texts with the same label similar"
        lines.append(f"contrastive: {first}, then the head is fitted; --head-init probe leaves the steps out")
    if job.steps:
        often = f"{job.repeats} × " if job.repeats > 1 else ""
        chosen = chosen_settings(user_settings, job.settings)
        lines += [f"chosen: {', '.join(chosen)}: {often}{pluralize(job.steps, 'step')}"] if chosen else []
    elif contrastive is not None:
        chosen = chosen_settings(user_settings, job.settings, names=("dropout", "freeze"))
        lines += [f"chosen: {', '.join(chosen)}"] if chosen else []
    fitted = is_fitted(model, baseline, user_settings)
    if fitted and (unused := unused_settings(user_settings, contrastive=contrastive is not None)):
        why = "the weights are set without training steps"
        why += "; --epochs 3 trains on the labels too" if contrastive is not None else ""
        lines.append(f"unused: {', '.join(unused)}, since {why}")
    return lines


def _rows_line(data: LabeledData) -> str:
    """Such as "342 training rows, 38 validation rows (10 % split)"."""
    rows = pluralize(len(data.train), "training row")
    if data.bad_rows:
        rows = f"{pluralize(data.bad_rows, 'unusable row')} skipped, {rows}"
    if not data.dev:
        return f"{rows}, no validation rows"
    validation = pluralize(len(data.dev), "validation row")
    if not data.split_off:
        return f"{rows}, {validation}"
    percent = 100 * len(data.dev) / (len(data.train) + len(data.dev))
    return f"{rows}, {validation} ({percent:.0f} % split)"
