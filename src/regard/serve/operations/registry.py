"""The operations by name. Each is imported when it is first used: a server of vectors starts without the tasks."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from regard.serve.operations.operation import Operation

OPERATIONS = {  # the module and the class of each
    "predict": ("predicting", "PredictOperation"),
    "embed": ("embedding", "EmbedOperation"),
    "fill": ("text_by_text", "FillOperation"),
    "answer": ("predicting", "AnswerOperation"),
    "translate": ("text_by_text", "TranslateOperation"),
    "generate": ("text_by_text", "GenerateOperation"),
    "explain": ("text_by_text", "ExplainOperation"),
    "tokenize": ("tokenizing", "TokenizeOperation"),
}


def operation_class(kind: str) -> Callable[..., Operation]:
    """The class of an operation, which takes a model and options."""
    module, name = OPERATIONS[kind]
    operation: Callable[..., Operation] = getattr(importlib.import_module(f"regard.serve.operations.{module}"), name)
    return operation
