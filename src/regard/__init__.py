"""Attention, Transformers and BERT: from text and a task to a small, fast model, with every intermediate in view."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from regard._version import __version__

if TYPE_CHECKING:
    from regard.client import AsyncClient, Client, ServerError
    from regard.comparison.compare import compare
    from regard.comparison.result import Comparison
    from regard.compression.compress import BelowFloor, compress
    from regard.compression.result import CandidateResult, Compression
    from regard.errors import (
        DataError,
        EngineWarning,
        FolderError,
        InputError,
        MissingExtra,
        NotFinite,
        RegardError,
        SeenRowsWarning,
        UntrainedWarning,
    )
    from regard.evaluation.evaluate import evaluate
    from regard.evaluation.result import Evaluation
    from regard.export.onnx_files import OnnxExport
    from regard.look.dataset.faithfulness import faithfulness
    from regard.look.dataset.head_importance import head_importance
    from regard.look.dataset.word_importance import word_importance
    from regard.look.explain.explanation import Explanation
    from regard.look.html_file import LookPage, look_page
    from regard.look.lens import Lens
    from regard.predict import Model, create, load
    from regard.predict.export_folder import export_onnx
    from regard.predict.search.search_file import search
    from regard.process import prepare_process
    from regard.progress import Progress
    from regard.ragged import Ragged
    from regard.selection.folds import CrossValidation, cross_validate
    from regard.selection.search import SettingsSearch, search_settings
    from regard.selection.seeds import SeedsResult, train_seeds
    from regard.tasks.answer import SpanAnswer
    from regard.tasks.classify import LabelAnswer, LabelsAnswer, NumberAnswer
    from regard.tasks.embed import SimilarityAnswer
    from regard.tasks.tag import EntitiesAnswer, WordsAnswer
    from regard.tasks.task import Answer
    from regard.tasks.translate import TranslationAnswer
    from regard.training.output.metrics_log import TrainingEvent
    from regard.training.pretrain import pretrain
    from regard.training.result import PretrainResult, TrainResult
    from regard.training.settings import Lora, Settings, TrainSettings
    from regard.training.train import train

__all__ = [
    "Answer",
    "AsyncClient",
    "BelowFloor",
    "CandidateResult",
    "Client",
    "Comparison",
    "Compression",
    "CrossValidation",
    "DataError",
    "EngineWarning",
    "EntitiesAnswer",
    "Evaluation",
    "Explanation",
    "FolderError",
    "InputError",
    "LabelAnswer",
    "LabelsAnswer",
    "Lens",
    "LookPage",
    "Lora",
    "MissingExtra",
    "Model",
    "NotFinite",
    "NumberAnswer",
    "OnnxExport",
    "PretrainResult",
    "Progress",
    "Ragged",
    "RegardError",
    "SeedsResult",
    "SeenRowsWarning",
    "ServerError",
    "Settings",
    "SettingsSearch",
    "SimilarityAnswer",
    "SpanAnswer",
    "TrainResult",
    "TrainSettings",
    "TrainingEvent",
    "TranslationAnswer",
    "UntrainedWarning",
    "WordsAnswer",
    "__version__",
    "compare",
    "compress",
    "create",
    "cross_validate",
    "evaluate",
    "export_onnx",
    "faithfulness",
    "head_importance",
    "load",
    "look_page",
    "prepare_process",
    "pretrain",
    "search",
    "search_settings",
    "train",
    "train_seeds",
    "word_importance",
]

# The module of each public name. It is imported when the name is first used, so that `import regard` needs no torch.
_HOMES = {
    "Answer": "regard.tasks.task",
    "AsyncClient": "regard.client",
    "BelowFloor": "regard.compression.compress",
    "CandidateResult": "regard.compression.result",
    "Client": "regard.client",
    "Comparison": "regard.comparison.result",
    "Compression": "regard.compression.result",
    "CrossValidation": "regard.selection.folds",
    "DataError": "regard.errors",
    "EngineWarning": "regard.errors",
    "EntitiesAnswer": "regard.tasks.tag",
    "Evaluation": "regard.evaluation.result",
    "Explanation": "regard.look.explain.explanation",
    "FolderError": "regard.errors",
    "InputError": "regard.errors",
    "LabelAnswer": "regard.tasks.classify",
    "LabelsAnswer": "regard.tasks.classify",
    "Lens": "regard.look.lens",
    "LookPage": "regard.look.html_file",
    "Lora": "regard.training.settings",
    "MissingExtra": "regard.errors",
    "Model": "regard.predict",
    "NotFinite": "regard.errors",
    "NumberAnswer": "regard.tasks.classify",
    "OnnxExport": "regard.export.onnx_files",
    "PretrainResult": "regard.training.result",
    "Progress": "regard.progress",
    "Ragged": "regard.ragged",
    "RegardError": "regard.errors",
    "SeedsResult": "regard.selection.seeds",
    "SeenRowsWarning": "regard.errors",
    "Settings": "regard.training.settings",
    "ServerError": "regard.client",
    "SettingsSearch": "regard.selection.search",
    "SimilarityAnswer": "regard.tasks.embed",
    "SpanAnswer": "regard.tasks.answer",
    "TrainResult": "regard.training.result",
    "TrainSettings": "regard.training.settings",
    "TrainingEvent": "regard.training.output.metrics_log",
    "TranslationAnswer": "regard.tasks.translate",
    "UntrainedWarning": "regard.errors",
    "WordsAnswer": "regard.tasks.tag",
    "compare": "regard.comparison.compare",
    "compress": "regard.compression.compress",
    "create": "regard.predict",
    "cross_validate": "regard.selection.folds",
    "evaluate": "regard.evaluation.evaluate",
    "export_onnx": "regard.predict.export_folder",
    "faithfulness": "regard.look.dataset.faithfulness",
    "head_importance": "regard.look.dataset.head_importance",
    "load": "regard.predict",
    "look_page": "regard.look.html_file",
    "prepare_process": "regard.process",
    "pretrain": "regard.training.pretrain",
    "search": "regard.predict.search.search_file",
    "search_settings": "regard.selection.search",
    "train": "regard.training.train",
    "train_seeds": "regard.selection.seeds",
    "word_importance": "regard.look.dataset.word_importance",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
