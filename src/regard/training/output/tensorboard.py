"""Training curves as TensorBoard events, for those who watch many runs at once."""

from __future__ import annotations

from pathlib import Path

from regard.errors import MissingExtra
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent

EVENTS = "events"


def tensorboard_progress(folder: Path, progress: OnTrainingEvent | None) -> OnTrainingEvent:
    """A callback that writes each number as a TensorBoard event under `events/`, then calls `progress`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("writing TensorBoard events", "track") from error
    writer = SummaryWriter(str(folder / EVENTS))

    def write(event: TrainingEvent) -> None:
        numbers = {**event.values, **event.values.get("scores", {})}
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                side = "dev" if event.kind == "score" else "train"
                writer.add_scalar(f"{side}/{name}", value, event.step)
        writer.flush()
        if progress is not None:
            progress(event)

    return write
