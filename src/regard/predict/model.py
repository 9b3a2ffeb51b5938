"""A network with its tokenizer: from texts to vectors, answers, filled masks and generated text."""

from __future__ import annotations

import functools
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.write_folder import write_folder
from regard.config import Config
from regard.data.records import Record
from regard.display import html_summary
from regard.errors import EngineWarning, InputError
from regard.model.linear import pack_weights
from regard.model.network import Network
from regard.model.transformer import Output
from regard.predict.embedding import EmbeddingMixin
from regard.predict.generation import GenerationMixin
from regard.predict.info import ModelInfo, model_info
from regard.predict.inputs import as_list
from regard.predict.look import LookMixin
from regard.predict.masked_words import Filled, fill, next_sentence
from regard.predict.model_task import RUN, read_training_run, task_name
from regard.predict.outputs import sequence_outputs
from regard.predict.runner import BATCH_TOKENS
from regard.progress import OnProgress, Progress
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imported by the methods that need them: embedding needs none of them
    from regard.data.batching.preprocessing import Preprocessing
    from regard.export.engines import Engine
    from regard.predict.attention import AttentionWeights
    from regard.predict.translation import Translated
    from regard.tasks.inference import RunNetwork
    from regard.tasks.task import Answer, Task


class Model(EmbeddingMixin, GenerationMixin, LookMixin):
    """A network, its tokenizer and the settings of its folder. `regard.load` and `regard.create` make one."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: Tokenizer | None = None,
        *,
        folder: Path | None = None,
        compile: bool = False,
        engine: str = "torch",
    ) -> None:
        self.checkpoint = checkpoint
        self.tokenizer = tokenizer
        self.folder = folder
        self.compile = compile
        self._initial_weights = _sample_weights(checkpoint.network) if checkpoint.untrained else None
        self._chosen_engine = engine
        if engine == "torch":
            pack_weights(checkpoint.network)  # the network runs more often than its weights change

    @property
    def network(self) -> Network:
        """The `nn.Module`."""
        return self.checkpoint.network

    @functools.cached_property
    def _engine(self) -> Engine:
        from regard.export.engines import Engine, open_engine

        if self._chosen_engine == "torch":
            return Engine("torch", self.network)
        opened = open_engine(self.checkpoint, self.folder, self._chosen_engine)
        if opened.notice is not None:
            warnings.warn(opened.notice, EngineWarning, stacklevel=4)
        return opened

    def open_engine(self) -> None:
        """Prepare the engine now; otherwise the first call does it."""
        _ = self._engine

    @property
    def engine(self) -> str:
        """What computes: "torch", "int8" (8-bit integers in torch) or "onnx int8" (in ONNX Runtime)."""
        return self._engine.name

    @property
    def engine_ms(self) -> dict[str, float]:
        """Milliseconds of each int8 engine for two texts, where they were measured to choose the faster one."""
        return self._engine.measured

    @property
    def inference_network(self) -> Network:
        """The network as the engine computes it; `network` holds the weights."""
        return self._engine.network

    @property
    def config(self) -> Config:
        """The settings of the network: layers, width, heads, …"""
        return self.checkpoint.config

    @property
    def family(self) -> str:
        """The family of the network, such as "bert" or "gpt2"."""
        return self.checkpoint.family

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the classes in order; None for a network without labels."""
        return self.checkpoint.labels

    @property
    def task(self) -> str | None:
        """The task of the model: as its training recorded it, else by its heads; None for a plain network."""
        training = read_training_run(self.folder)
        if training is not None:
            return training.task
        return task_name(self.network.heads, encoder=self.network.encoder is not None)

    @property
    def untrained(self) -> bool:
        """Whether the weights are randomly initialized and have not changed since."""
        return self.checkpoint.untrained and _is_same(self._initial_weights, _sample_weights(self.network))

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.network.parameters()).device

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.network.parameters())
        untrained = ", untrained" if self.untrained else ""
        return f"Model({self.family}, {self.task or 'no task'}, {parameters:,} parameters, {self.device}{untrained})"

    def _repr_html_(self) -> str:
        return html_summary(repr(self), asdict(self.info()))

    def info(self) -> ModelInfo:
        """The family, shape, size, task and labels of the model."""
        return model_info(
            self.checkpoint, self.tokenizer, self.folder, task=self.task, pooling=self.pooling, untrained=self.untrained
        )

    def save(
        self,
        folder: str | Path,
        *,
        overwrite: bool = False,
        write_extra_files: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the model as a folder, which `regard.load` reads back bit for bit.

        write_extra_files: writes more files into the folder before it gets its name.

        transformers' `from_pretrained` opens it too if the family can hold these settings; see docs/families.md.
        """
        target = Path(folder).expanduser()
        checkpoint = replace(self.checkpoint, untrained=self.untrained)

        def write(temporary: Path) -> None:
            self._write_extra_files(temporary)
            if write_extra_files is not None:
                write_extra_files(temporary)

        write_folder(target, checkpoint, overwrite=overwrite, write_extra_files=write)
        return target

    def _write_extra_files(self, target: Path) -> None:
        if self.tokenizer is not None:
            self.tokenizer.save(target)
        if self.folder is not None and read_training_run(self.folder) is not None:
            shutil.copy2(self.folder / RUN, target / RUN)  # the task and the settings of its training

    def outputs(
        self,
        ids: Sequence[Sequence[int]],
        *,
        segments: Sequence[Sequence[int]] | None = None,
        decoder_ids: Sequence[Sequence[int]] | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Output]:
        """Hidden states and logits of each sequence, in order.

        segments: segment ids (token types) of each sequence, for networks that have them.
        decoder_ids: the target so far of each sequence, for encoder-decoders.
        """
        return sequence_outputs(
            self._runner, ids, segments=segments, decoder_ids=decoder_ids, batch_tokens=batch_tokens
        )

    def predict(
        self,
        texts: Iterable[Any] | Any,
        *,
        abstain: float | None = None,
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> list[Answer]:
        """One answer per input, in order.

        texts: texts, or what the task takes: (first, second), (question, context), a list of words to tag. Also a dict
            of columns, a data frame, a pyarrow table or a `datasets.Dataset`, one answer per row.
        abstain: mark answers whose `confidence` is below this probability as `abstained`.

        Long texts are split into windows; every answer says into how many. `answer.json()` is a plain dict.
        """
        items = as_list(texts)
        answers: list[Answer] = []
        for answer in self.answers(items, abstain=abstain, batch_tokens=batch_tokens):
            answers.append(answer)
            if progress is not None:
                progress(Progress("answers", len(answers), len(items)))
        return answers

    def answers(
        self, items: Iterable[Any], *, abstain: float | None = None, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[Answer]:
        """The same as `predict`, one after the other: neither the inputs nor the answers have to fit in memory."""
        from regard.tasks.inference import answer_records
        from regard.tasks.task import check_abstain, with_abstention

        check_abstain(abstain)
        task, records = self.task_and_records(items)
        numbered = answer_records(
            task, self.task_runner(task), records, self.preprocessing(), device=self.device, batch_tokens=batch_tokens
        )
        if abstain is None:
            return (answer for _, answer in numbered)
        return (with_abstention(answer, abstain) for _, answer in numbered)

    def task_runner(self, task: Task) -> RunNetwork:
        """The network as a task runs it, with an error for ids that are outside its vocabulary."""
        from regard.predict.answers import checked_runner

        return checked_runner(self.inference_network, task)

    def task_and_records(self, items: Iterable[Any]) -> tuple[Task, Iterator[Record]]:
        """The task of the model, and the items as records of this task."""
        from regard.predict.answers import task_and_records

        return task_and_records(self.checkpoint, self.folder, items)

    def preprocessing(self, *, prefix: str | None = None) -> Preprocessing:
        """How texts become sequences: the tokenizer, the windows the model was trained with, and the prefix."""
        from regard.checkpoint.reading import preprocessing_of

        training = read_training_run(self.folder)
        window = None if training is None else training.window
        overlap = 0.25 if training is None else training.overlap
        return preprocessing_of(
            self.checkpoint, self.require_tokenizer(), window=window, overlap=overlap, prefix=prefix
        )

    def translate(self, texts: Sequence[str], *, batch_tokens: int = 2048, **settings: Any) -> list[str]:
        """The best translation of each text; `settings` are those of `generate`: beams, length_penalty, …"""
        translated = self.translations(texts, batch_tokens=batch_tokens, **settings)
        return [best[0].text for best in translated]

    def translations(
        self,
        texts: Sequence[str],
        *,
        best: int = 1,
        alignment: bool = False,
        batch_tokens: int = 2048,
        prefix: str | None = None,
        **settings: Any,
    ) -> list[list[Translated]]:
        """The `best` translations of each text, best first, with scores, and alignments if `alignment` is true.

        prefix: a text put before each text, as T5 expects it; by default that of the model's folder.
        """
        from regard.predict.translation import translations

        if self.config.kind != "encoder-decoder":
            raise InputError(f"only encoder-decoders translate, and the network of this model ({self.family}) is none.")
        return translations(
            self.inference_network,
            self.writer,
            self.preprocessing(prefix=prefix),
            texts,
            best=best,
            alignment=alignment,
            batch_tokens=batch_tokens,
            settings=settings,
        )

    def fill(self, text: str, *, top: int = 5) -> list[list[Filled]]:
        """The `top` most likely words for each [MASK] of the text: one list per mask, the most likely word first."""
        return fill(self.inference_network, self.require_tokenizer(), text, top=top)

    def next_sentence(self, first: str, second: str) -> float:
        """The probability that the second text comes right after the first, for models with such a head (BERT)."""
        return next_sentence(self.inference_network, self.require_tokenizer(), first, second)

    def attention(
        self,
        text: str,
        *,
        pair: str | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> AttentionWeights:
        """Attention weights of a text by layer, each of shape (heads, tokens, tokens).

        layers: 1 is the first block, -1 the last; all of them if not given.
        heads: counted from 0; all of them if not given.

        A text longer than the model's maximum is split into overlapping windows. Then `.windows` has the weights of
        each window with its tokens and offsets; tokens of different windows do not attend to each other.
        """
        from regard.predict.attention import AttentionWeights, attention_windows

        windows = attention_windows(self.network, self.require_tokenizer(), text, pair, layers=layers, heads=heads)
        return AttentionWeights(list(windows))

    def require_tokenizer(self) -> Tokenizer:
        """The tokenizer; raises an error where the model has none."""
        if self.tokenizer is None and self.folder is not None:
            return Tokenizer.load(self.folder)  # its error names the files that were looked for
        if self.tokenizer is None:
            raise InputError(
                "this model has no tokenizer (a preset has none), so it cannot read texts. "
                "Give ids, load a model that has one, or make it with regard.create(…, tokenizer=folder)."
            )
        return self.tokenizer


def _sample_weights(network: Network) -> Tensor | None:
    """One number of every weight, to see whether the network was trained since; None without values (meta device)."""
    weights = [weight.detach() for weight in network.parameters()]
    if any(weight.is_meta for weight in weights):
        return None
    return torch.stack([weight.flatten()[0] for weight in weights]).cpu()


def _is_same(before: Tensor | None, now: Tensor | None) -> bool:
    """Whether these are the same numbers, possibly in another dtype."""
    if before is None or now is None:
        return before is now
    return before.shape == now.shape and torch.equal(before.to(now.dtype), now)
