"""Training curves as TensorBoard events, for those who watch many runs at once."""

from __future__ import annotations

from pathlib import Path

from regard.errors import MissingExtra
from regard.training.metrics_log import Event, Tell

EVENTS = "events"


def tracked(folder: Path, tell: Tell | None) -> Tell:
    """Tell as before, and write each number as an event under `events/`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("writing TensorBoard events", "track") from error
    writer = SummaryWriter(str(folder / EVENTS))

    def write(event: Event) -> None:
        numbers = {**event.values, **event.values.get("scores", {})}
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                side = "dev" if event.kind == "score" else "train"
                writer.add_scalar(f"{side}/{name}", value, event.step)
        writer.flush()
        if tell is not None:
            tell(event)

    return write
