"""The candidates in the order of their cost, and how each is made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.baselines import BASELINES
from regard.checkpoint.files import write_json
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.write_folder import write_folder
from regard.comparison.trainings.time_budget import train_within
from regard.compression.students.importance import ROWS, Importance, measure_importance
from regard.compression.students.least_squares import can_fit, evenly_spaced, fit_student, fitting_batch
from regard.compression.students.shapes import Shape, can_shrink, kept_layers, shrink
from regard.compression.students.vocabulary import can_trim, teacher_ids, trim_vocabulary
from regard.compression.teacher import Teacher
from regard.config import ModelConfig
from regard.errors import InputError, setting
from regard.export.engines import RECORD
from regard.export.int8_linear import int8_layers
from regard.model.transformer import Transformer
from regard.predict.model import Model
from regard.predict.model_task import RUN
from regard.text.tokenizer import Tokenizer
from regard.training.engine.distillation import Distillation
from regard.training.load_data import LabeledData, texts_of
from regard.training.output.metrics_log import OnTrainingEvent


@dataclass(frozen=True)
class CandidateSpec:
    """A model to make and to measure.

    base: the candidate whose folder it starts from; the teacher's if None.
    """

    name: str
    method: str
    kind: str  # "teacher", "int8", "student" or "baseline"
    base: str | None = None
    exclude: tuple[str, ...] = ()  # layers that stay in fp32
    shape: Shape | None = None
    trim: bool = False
    max_tokens: int | None = None  # of a trimmed vocabulary
    preset: str | None = None

    @property
    def slug(self) -> str:
        """The name of its folder."""
        return self.name.replace(" ", "-").replace("/", "-")

    @property
    def is_trained(self) -> bool:
        return self.kind in ("student", "baseline")


@dataclass(eq=False)
class Workshop:
    """What candidates are made from."""

    teacher: Teacher
    data: LabeledData
    settings: Mapping[str, Any]
    training: OnTrainingEvent | None = None
    importance: Importance | None = None
    seconds: dict[str, float] = field(default_factory=dict)  # duration of trainings
    answered: bool = False  # if the teacher's answers for all rows are on disk
    more_rows: Callable[[], None] | None = None  # adds rows to `data`, called once before the first training

    @property
    def teacher_folder(self) -> Path:
        """The folder of the teacher; a name on the hub has one too."""
        folder = self.teacher.model.folder
        assert folder is not None
        return folder

    def make(self, candidate: CandidateSpec, folder: Path, base: Path, budget: float | None) -> None:
        """Write the model folder of a candidate; a training that was interrupted there goes on."""
        makers: dict[str, Callable[[], None]] = {
            "int8": lambda: self._with_int8(candidate, folder, base),
            "student": lambda: self._train_student(candidate, folder, budget),
            "baseline": lambda: self._train_baseline(candidate, folder, budget),
        }
        self.prepare(candidate)
        makers[candidate.kind]()

    def prepare(self, candidate: CandidateSpec) -> None:
        """What the first training needs and all others share: more rows, and the teacher's answers for all rows.

        It is done before the time that is left is divided between the trainings.
        """
        if not candidate.is_trained:
            return
        if self.more_rows is not None:
            self.more_rows()
            self.more_rows = None
        if not self.answered:
            self.teacher.answer(self.data.train)
            self.answered = True

    def _with_int8(self, candidate: CandidateSpec, folder: Path, base: Path) -> None:
        """A copy of a model that runs in int8."""
        shutil.copytree(base, folder, dirs_exist_ok=True)
        record_engine(folder, {"name": "int8", "exclude": list(candidate.exclude)})

    def _train_student(self, candidate: CandidateSpec, folder: Path, budget: float | None) -> None:
        start = folder.with_name("start")
        assert candidate.shape is not None
        layers = self._write_start(candidate, candidate.shape, start)
        same_width = candidate.shape.width == self._config.width
        distillation = self._distillation(layers, same_width=same_width)
        if candidate.trim:
            ids = teacher_ids(self.teacher.model.require_tokenizer(), Tokenizer.load(start))
            distillation = replace(distillation, token_ids=ids)
        length = {} if "steps" in self.settings else {"epochs": EPOCHS}
        options = {**length, **self.settings, "distillation": distillation}
        self.seconds[candidate.name] = train_within(
            budget, folder, self.data, preset=None, start=str(start), settings=options, training=self.training
        )

    @property
    def _config(self) -> ModelConfig:
        config = self.teacher.model.config
        assert isinstance(config, ModelConfig)
        return config

    def _write_start(self, candidate: CandidateSpec, shape: Shape, start: Path) -> dict[int, int]:
        """The student before its training, cut out of the teacher; returns which layers match."""
        model = self.teacher.model
        layers = dict(enumerate(kept_layers(self._config.layers, shape.layers)))
        if (start / "config.json").is_file():
            return layers
        if self.importance is None:
            assert isinstance(model.network, Transformer)
            rows = evenly_spaced(self.data.train, ROWS)
            self.importance = measure_importance(model.network, self.teacher.task, rows, model.preprocessing())
        checkpoint, tokenizer = self._smaller(shape, self.importance), model.require_tokenizer()
        if candidate.trim:
            checkpoint, tokenizer = trim_vocabulary(
                checkpoint, tokenizer, texts_of(self.data.train), max_tokens=candidate.max_tokens
            )
        write_folder(start, checkpoint, overwrite=True, write_extra_files=tokenizer.save)
        return layers

    def _smaller(self, shape: Shape, importance: Importance) -> Checkpoint:
        """A network of this shape, fitted to the teacher by least squares, or cut out where that is not possible."""
        model = self.teacher.model
        if not can_fit(model.config):
            return shrink(model.checkpoint, shape, importance)
        batch = fitting_batch(self.teacher.task, self.data.train, model.preprocessing())
        return fit_student(model.checkpoint, shape, importance, batch)

    def _distillation(self, layers: dict[int, int], *, same_width: bool) -> Distillation:
        network = self.teacher.model.network
        learns_layers = bool(layers) and same_width
        return Distillation(
            self.teacher.soft_targets,
            identity=self.teacher.identity,
            network=network if isinstance(network, Transformer) and learns_layers else None,
            layers=layers,
        )

    def _train_baseline(self, candidate: CandidateSpec, folder: Path, budget: float | None) -> None:
        distillation = Distillation(self.teacher.soft_targets, identity=self.teacher.identity)
        settings = {name: value for name, value in self.settings.items() if name in ("seed", "device")}
        options: dict[str, Any] = {**settings, "distillation": distillation}
        start = str(self.teacher_folder) if candidate.preset == "static" else None
        self.seconds[candidate.name] = train_within(
            budget, folder, self.data, preset=candidate.preset, start=start, settings=options, training=self.training
        )


def record_engine(folder: Path, record: Mapping[str, Any]) -> None:
    """Note in run.json which engine the model is for; `regard.load` reads it."""
    run = json.loads((folder / RUN).read_text(encoding="utf-8")) if (folder / RUN).is_file() else {}
    write_json(folder / RUN, {**run, RECORD: dict(record)})


def plan_candidates(model: Model, task: str, *, methods: Sequence[str]) -> list[CandidateSpec]:
    """All candidates for a teacher, those that cost least to make first."""
    candidates: list[CandidateSpec] = []
    has_blocks = bool(int8_layers(model.network))
    if "int8" in methods and has_blocks:
        candidates.append(CandidateSpec("int8", INT8_METHOD, "int8"))
    if "layers" in methods and can_shrink(model.checkpoint):
        candidates += _students(model, task)
    for name in ("static", "ngram"):
        if name in methods and task in BASELINE_TASKS and not (name == "static" and not has_blocks):
            about = BASELINES[name].from_model("the teacher") if name == "static" else name
            candidates.append(CandidateSpec(name, f"{about}, on the teacher's probabilities", "baseline", preset=name))
    return candidates


def _students(model: Model, task: str) -> list[CandidateSpec]:
    """Fewer layers, pruned units, and a narrow student; each also in int8."""
    config = model.config
    assert isinstance(config, ModelConfig)
    trims = can_trim(model.require_tokenizer(), model.checkpoint)
    narrow = config.head_width * max(config.attention.heads // 2, 1)
    results: list[CandidateSpec] = []
    counts = sorted(
        {max(config.layers * 2 // 3, 1), max(config.layers // 2, 1), max(config.layers // 3, 1)}, reverse=True
    )
    for layers in [count for count in counts if count < config.layers]:
        shape = Shape(layers, config.width, config.ffn_width)
        results += _with_int8(
            CandidateSpec(f"layers {layers}", f"{layers} of {config.layers} layers, distilled", "student", shape=shape)
        )
    pruned = Shape(config.layers, config.width, max(config.ffn_width // 2, 1))
    results += _with_int8(CandidateSpec("pruned", "half of the feed-forward units, distilled", "student", shape=pruned))
    small = Shape(max(config.layers // 2, 1), narrow, max(config.ffn_width // 2, 1))
    about = f"{small.layers} layers of width {narrow}{', smaller vocabulary' if trims else ''}, distilled"
    limit = max_vocabulary(small, config) if task in ANY_TOKENIZER else None
    return results + _with_int8(
        CandidateSpec("small", about, "student", shape=small, trim=trims, max_tokens=limit if trims else None)
    )


def max_vocabulary(shape: Shape, config: ModelConfig) -> int:
    """The size of a vocabulary with which a small student has at most `SMALL` parameters."""
    blocks = shape.layers * shape.width * (4 * shape.width + 2 * shape.ffn_width + 13)
    places = config.max_tokens or 0
    return max((SMALL - blocks) // shape.width - places - shape.width - OTHER_ROWS, FEWEST_TOKENS)


def _with_int8(candidate: CandidateSpec) -> list[CandidateSpec]:
    name = f"{candidate.name} int8"
    return [candidate, CandidateSpec(name, f"{candidate.method}, int8", "int8", base=candidate.name)]


def without_layers(candidate: CandidateSpec, layers: Sequence[str]) -> CandidateSpec:
    """The same candidate with these layers in fp32."""
    count = len(layers)
    name = f"{candidate.name} but {count} {'layer' if count == 1 else 'layers'}"
    return replace(candidate, name=name, method=f"{candidate.method}, {count} in fp32", exclude=tuple(layers))


def check_methods(names: Sequence[str]) -> None:
    """Raise InputError for a method that does not exist."""
    for name in names:
        if name not in METHODS:
            raise InputError(f'the method "{name}" is not known; expected some of: {", ".join(METHODS)}.')


def check_candidates(candidates: Sequence[CandidateSpec], task: str, methods: Sequence[str]) -> None:
    """Raise InputError if no method can be used for this model."""
    if not candidates:
        raise InputError(
            f"no candidate can be made of this model for {task} with {setting('methods')} {' '.join(methods)}. Try "
            "other methods: int8 is for every Transformer; docs/compress.md says what the others are for."
        )


def unused_notes(model: Model, task: str, methods: Sequence[str]) -> list[str]:
    """A note on methods that were asked for and make no candidate of this model; none if all methods are tried."""
    if set(methods) >= set(METHODS):
        return []
    unused = [name for name in methods if not plan_candidates(model, task, methods=[name])]
    return [f"no candidate can be made of this model for {task} with {' and '.join(unused)}"] if unused else []


INT8_METHOD = "8-bit integer products"
SMALL = 5_000_000  # parameters of a small student
FEWEST_TOKENS = 4_000
OTHER_ROWS = 16  # as wide as the network: norms, segments and the output layer
ANY_TOKENIZER = ("classify", "pair", "tag")  # tasks whose students may cut words in other places than the teacher
BASELINE_TASKS = ("classify", "pair")  # whose probabilities a baseline can learn
EPOCHS = 10.0  # of students; fewer if the time is not enough
METHODS = ("int8", "layers", "static", "ngram")
