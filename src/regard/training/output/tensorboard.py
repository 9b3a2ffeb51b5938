"""Training curves as TensorBoard events, for those who watch many runs at once."""

from __future__ import annotations

from pathlib import Path

from regard.errors import MissingExtra
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent, event_numbers

EVENTS = "events"


def tensorboard_progress(folder: Path, progress: OnTrainingEvent | None) -> OnTrainingEvent:
    """A callback that writes each loss and score as a TensorBoard event under `events/`, then calls `progress`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("writing TensorBoard events", "track") from error
    writer = SummaryWriter(str(folder / EVENTS))

    def write(event: TrainingEvent) -> None:
        for name, value in event_numbers(event):
            writer.add_scalar(name, value, event.step)
        writer.flush()
        if progress is not None:
            progress(event)

    return write
