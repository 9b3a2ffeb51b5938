"""Whether a teacher was trained on the rows that it is measured on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint.files import read_json
from regard.errors import RegardError
from regard.predict.model_task import RUN, read_training_run
from regard.training.load_data import Where, load_data


def seen_note(folder: Path | None, data: Where, task: str, reading: Mapping[str, Any]) -> str | None:
    """A note if the training of the model in this folder read the same data, by the hash in its run.json.

    The data is split as that training did it. None if it is other data, or if nothing is known.
    """
    run = read_training_run(folder)
    stored = None if run is None or not isinstance(run.read_as, Mapping) else run.read_as.get("hash")
    if folder is None or stored is None:
        return None
    settings = read_json(folder, RUN)["settings"]
    fraction, seed = settings.get("dev_fraction"), settings.get("seed", 0)
    try:
        rows = load_data(data, task=task, dev_fraction=fraction, seed=seed, **reading)
    except RegardError:  # it cannot be split like that
        return None
    if rows.fingerprint != stored:
        return None
    return (
        "the teacher was trained on this data, so it scores higher on the test rows than on new ones, and students "
        "seem worse than they are. Give test rows that it has not seen"
    )
