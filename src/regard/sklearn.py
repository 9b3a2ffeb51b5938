"""Estimators of scikit-learn: models that are trained on texts, and vectors of texts, in pipelines and searches.

    from regard.sklearn import TextClassifier
    from sklearn.model_selection import cross_val_score

    scores = cross_val_score(TextClassifier(epochs=2), texts, labels, cv=5)

Needs the extra `sklearn`.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from regard.data.sources.memory import is_table, table_rows
from regard.errors import InputError, MissingExtra, did_you_mean
from regard.foreign import path_inside
from regard.predict import Model, load
from regard.training.settings import Settings
from regard.training.train import train

try:  # scikit-learn has no types
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
except ImportError as error:
    raise MissingExtra("regard.sklearn", "sklearn") from error

FILES = "folder_files"  # key of the model folder in a pickled estimator
SKIPPED = ("metrics.jsonl", "curves.png", "report.html")  # files of a folder that are not needed for predictions
SETTINGS = ("epochs", "lr", "batch_size", "dropout", "seed", "device")  # of a training, by name of the parameter
Array = npt.NDArray[Any]


class _TextInput(BaseEstimator):
    """An estimator whose input is a list of texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


class _TextEstimator(_TextInput):
    """What classifier and regressor share: training, loading and pickling of the model folder."""

    def __init__(
        self,
        start: str | None = None,
        *,
        preset: str | None = None,
        epochs: float | None = None,
        lr: float | None = None,
        batch_size: int | None = None,
        dropout: float | None = None,
        seed: int = 0,
        device: str = "auto",
        folder: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.start = start
        self.preset = preset
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.dropout = dropout
        self.seed = seed
        self.device = device
        self.folder = folder
        self.settings = settings

    def _train(self, columns: Mapping[str, list[str]], labels: Sequence[Any], kind: str) -> Self:
        """Train on columns of texts and their labels, and load the model."""
        check_consistent_length(next(iter(columns.values())), labels)
        folder = Path(_temporary_folder(self) if self.folder is None else self.folder).expanduser()
        self.result_ = train(
            {**columns, "label": list(labels)},
            out=folder,
            start=self.start,
            preset=self.preset,
            labels=kind,
            task="classify" if "text" in columns else "pair",
            columns={name: name for name in (*columns, "label")},
            overwrite=True,
            **self._settings(),
        )
        self.folder_ = str(folder)
        self.model_ = load(folder, device=self.device)
        return self

    def _settings(self) -> dict[str, Any]:
        """The settings of the training: those with a parameter of their own, and those in `settings`."""
        settings = dict(self.settings or {})
        for name in settings:
            if name in SETTINGS:
                raise InputError(f'settings has "{name}", which is a parameter of its own: {name}=…')
            if name not in Settings.__dataclass_fields__:
                raise InputError(f'settings: there is no "{name}".{did_you_mean(name, Settings.__dataclass_fields__)}')
        own = {name: getattr(self, name) for name in SETTINGS}
        return {**settings, **{name: value for name, value in own.items() if value is not None}}

    def _answers(self, texts: Any) -> list[Any]:
        check_is_fitted(self)
        columns = list(_columns(texts).values())
        items = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        model: Model = self.model_
        return model.predict(items)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, and the files of the model folder as bytes: no weights are pickled."""
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_cleanup", None)
        if state.pop("model_", None) is not None:
            state[FILES] = _folder_files(Path(state["folder_"]))
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        values = dict(state)
        files = values.pop(FILES, None)
        super().__setstate__(values)
        if files is not None:
            folder = Path(_temporary_folder(self))
            _write_files(folder, files)
            self.folder_ = str(folder)
            self.model_ = load(folder, device=self.device)


class TextClassifier(ClassifierMixin, _TextEstimator):
    """A classifier of texts or of pairs of texts: one label per text, or several as a matrix of 0 and 1.

    start: the model to fine-tune: a folder, a published name or a hub id; minilm if None.
    preset: or the name of a network to train from scratch.
    epochs, lr, batch_size, dropout, seed, device: settings of the training; chosen from the data if None.
    folder: where the model is written, replacing what regard wrote there before; a temporary folder if None.
    settings: further settings of `regard.Settings`, by name.

    Fitted: `classes_`, `model_` (a `regard.Model`), `folder_`, `result_` (a `regard.TrainResult`).

    Example: `TextClassifier(epochs=2).fit(["great film", "dull"] * 20, ["good", "bad"] * 20).predict(["great"])`.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts, or pairs of texts, and a class for each, or a matrix (texts, labels) of 0 and 1."""
        columns = _columns(X)
        check_classification_targets(y)
        if type_of_target(y) == "multilabel-indicator":
            matrix = np.asarray(y)
            self.classes_ = np.arange(matrix.shape[1])
            self.multilabel_ = True
            return self._train(columns, [[str(number) for number in np.flatnonzero(row)] for row in matrix], "multi")
        labels = column_or_1d(y)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        self.multilabel_ = False
        if len(self.classes_) < 2:
            raise InputError(f'y has one class only ("{self.classes_[0]}"); there is nothing to learn.')
        return self._train(columns, [self._names()[number] for number in numbers], "class")

    def _names(self) -> list[str]:
        """The classes as text; their numbers where two classes are the same as text."""
        names = [str(value) for value in self.classes_.tolist()]
        unique = len(set(names)) == len(names) and all(name.strip() == name and name for name in names)
        return names if unique else [str(number) for number in range(len(names))]

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class (texts, classes), in the order of `classes_`."""
        answers = self._answers(X)
        names = self._names()
        return np.array([[answer.scores.get(name, 0.0) for name in names] for answer in answers]).reshape(
            -1, len(names)
        )

    def predict(self, X: Any) -> Array:
        """The class of each text; for several labels a matrix (texts, labels) of 0 and 1."""
        answers = self._answers(X)
        names = self._names()
        if self.multilabel_:
            rows = [[int(name in answer.labels) for name in names] for answer in answers]
            return np.array(rows, np.int64).reshape(-1, len(names))
        number = {name: index for index, name in enumerate(names)}
        result: Array = self.classes_[np.array([number[answer.label] for answer in answers], np.int64)]
        return result

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class TextRegressor(RegressorMixin, _TextEstimator):
    """Predicts a number for a text or a pair of texts. The parameters are those of `TextClassifier`."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts, or pairs of texts, and a number for each."""
        columns = _columns(X)
        numbers = np.asarray(column_or_1d(y), np.float64)
        if not np.isfinite(numbers).all():
            raise InputError("y has numbers that are not finite (NaN or infinity). Leave these texts out.")
        return self._train(columns, numbers.tolist(), "number")

    def predict(self, X: Any) -> Array:
        """The number of each text."""
        return np.array([answer.value for answer in self._answers(X)], np.float64)


class TextEmbedder(TransformerMixin, _TextInput):
    """Turns texts into vectors, as the first step of a pipeline. It is not trained.

    model: a folder, a published name or a hub id.
    layer: 0 is the embeddings, -1 the last block. pooling: mean, first or max; auto is that of the model.
    normalize: whether vectors have length 1. device: auto, cpu, cuda …

    Example: `make_pipeline(TextEmbedder(), LogisticRegression()).fit(texts, labels)`.
    """

    def __init__(
        self,
        model: str = "minilm",
        *,
        layer: int = -1,
        pooling: str = "auto",
        normalize: bool = True,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.layer = layer
        self.pooling = pooling
        self.normalize = normalize
        self.device = device

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Load the model; the texts are not used."""
        self._model: Model | None = load(self.model, device=self.device)
        self.width_ = self._model.config.width
        return self

    def transform(self, X: Any) -> Array:
        """An array (texts, width)."""
        check_is_fitted(self)
        columns = _columns(X)
        if len(columns) > 1:
            raise InputError("X has pairs of texts, expected one text per row.")
        if self._model is None:  # after unpickling
            self._model = load(self.model, device=self.device)
        options: dict[str, Any] = {"layer": self.layer, "pooling": self.pooling, "normalize": self.normalize}
        vectors: Array = self._model.embed(columns["text"], **options)
        return vectors

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns."""
        check_is_fitted(self)
        return np.array([f"textembedder{number}" for number in range(self.width_)], dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Without the model, which is loaded again by its name."""
        state: dict[str, Any] = {**super().__getstate__()}
        if "_model" in state:
            state["_model"] = None
        return state


def _columns(texts: Any) -> dict[str, list[str]]:
    """Texts as a column, or pairs of texts as two."""
    if isinstance(texts, str):
        raise InputError("X is one text, expected a list of texts.")
    if is_table(texts):  # going through a frame would give the names of its columns
        items = [tuple(row.values()) for row in table_rows(texts)]
    else:
        items = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    items = [item[0] if isinstance(item, list | tuple) and len(item) == 1 else item for item in items]
    if items and all(isinstance(item, list | tuple) and len(item) == 2 for item in items):
        columns = {"first": [item[0] for item in items], "second": [item[1] for item in items]}
    else:
        columns = {"text": items}
    for values in columns.values():
        for value in values:
            if not isinstance(value, str):
                raise InputError(f"X has {value!r:.60} ({type(value).__name__}), expected texts or pairs of texts.")
    return columns


def _temporary_folder(estimator: Any) -> str:
    """A folder that is deleted with the estimator."""
    folder = tempfile.mkdtemp(prefix="regard-")
    estimator._cleanup = weakref.finalize(estimator, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _folder_files(folder: Path) -> dict[str, bytes]:
    """The files of a model folder by their paths in it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in SKIPPED)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = path_inside(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
