"""The commands of the command line, one file each. To add one: a file here, and the first line of its help below."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping

from regard.cli.command import Command

# In the order in which `regard --help` lists them, with the first line of their help: it is shown without an import.
SUMMARIES = {
    "info": "Show the family, task, size, shape and tokenizer of a model.",
    "check": "Check data for errors: what is wrong, where, and how to fix it.",
    "train": "Train a model on your data and write it to a folder.",
    "evaluate": "Evaluate a model on labeled data, with 95 % intervals; a language model on text or minimal pairs.",
    "compare": "Compare models on your data: train or load each, test every pair, and measure what they cost.",
    "predict": "Predict labels, entities or answers for texts with a trained model.",
    "pretrain": "Pretrain a language model on plain text, from scratch or from a model.",
    "fill": "Predict the words for [MASK] with a pretrained model, or whether one text follows another (--next).",
    "explain": "Explain an answer: how much each word contributed; over a file, the words that a model relies on.",
    "attention": "Show the attention weights of a text, for any layers and heads.",
    "look": "Open a page on this machine that looks inside a model: its heads, their arithmetic, and why it answered.",
    "embed": "Compute one vector per text, from any layer.",
    "search": "Find the texts of a file that are most similar to a query.",
    "generate": "Generate text: continue a prompt, or answer it with an encoder-decoder.",
    "translate": (
        "Translate texts with an encoder-decoder: a Transformer, T5, BART, Marian, Pegasus, or a recurrent network."
    ),
    "compress": "Find the fastest model that keeps the score of a trained one: int8, fewer layers, smaller students.",
    "export": "Write an encoder with its head as ONNX files, which run without regard and torch.",
    "serve": "Answer requests over HTTP with one or several models: classes, entities, answers, vectors, text.",
    "tokenizer": "Train a tokenizer on text files of any size.",
    "vectors": "Train word vectors on text files; find nearest words and solve analogies.",
    "sample": "Write a small data set that comes with regard, to try the commands on.",
    "lesson": "Open a lesson: the path from counting words to a served BERT, as pages whose code runs.",
    "doctor": "Show the hardware and software of this machine, and which of it regard uses.",
}


class Commands(MutableMapping[str, Command]):
    """Every command by its name. Those of this package are imported when they are first used."""

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name in SUMMARIES and name not in self._loaded:
            self._loaded[name] = importlib.import_module(f"{__name__}.{name}").COMMAND
        return self._loaded[name]

    def __setitem__(self, name: str, command: Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.summaries())

    def __len__(self) -> int:
        return len(self.summaries())

    def __contains__(self, name: object) -> bool:
        return name in SUMMARIES or name in self._loaded

    def summaries(self) -> dict[str, str]:
        """The first line of help of every command, by its name."""
        return {**SUMMARIES, **{name: command.help.splitlines()[0] for name, command in self._loaded.items()}}
