"""A model in hand: a network with its tokenizer, from texts to vectors and answers."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.checkpoint.folder import Checkpoint, write_folder
from regard.config import POOLS, Config
from regard.data.batching.examples import Inputs
from regard.data.batching.sequences import SequenceWindow, split_into_windows, token_batches
from regard.data.inputs import check_ids, check_segments, check_texts
from regard.data.records import Record
from regard.errors import InputError, NotFinite, did_you_mean, pluralize, setting
from regard.model import hooks as taps
from regard.model.heads import TOKEN_HEADS
from regard.model.kernels.compiled import compiled
from regard.model.kernels.cuda_graphs import GraphedForward, supports_graphs
from regard.model.linear import pack_weights
from regard.model.network import Network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.transformer import Output, Transformer
from regard.predict.generation import GenerationMixin
from regard.predict.info import ModelInfo
from regard.predict.inputs import as_items, as_list, as_records, check_encoding, is_pair, token_error
from regard.predict.masked_words import Filled, fill, next_sentence
from regard.predict.model_task import RUN, name_of, no_answers, task_for, trained
from regard.predict.pooling import joined, pooled, split
from regard.progress import OnProgress, Progress
from regard.ragged import Ragged
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imported where an answer is asked for: vectors need none of them
    from regard.data.batching.preprocessing import Preprocessing
    from regard.predict.attention import AttentionWeights
    from regard.predict.search import Match
    from regard.predict.translation import Translated
    from regard.tasks.inference import RunNetwork
    from regard.tasks.task import Answer, Task

BATCH_TOKENS = 8192
TEXTS_AT_ONCE = 1024
MIX = "mix"  # in the place of a layer: all of them


class Model(GenerationMixin):
    """A network, its tokenizer, and what its folder says of them."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: Tokenizer | None = None,
        *,
        folder: Path | None = None,
        compile: bool = False,
    ) -> None:
        self.checkpoint, self.tokenizer, self.folder, self.compile = checkpoint, tokenizer, folder, compile
        self._runs: dict[int | str | None, Callable[..., Any]] = {}
        self._drawn = _sample(checkpoint.network) if checkpoint.untrained else None
        pack_weights(checkpoint.network)  # it reads more often than it changes

    @property
    def network(self) -> Network:
        return self.checkpoint.network

    @property
    def config(self) -> Config:
        return self.checkpoint.config

    @property
    def family(self) -> str:
        return self.checkpoint.family

    @property
    def labels(self) -> tuple[str, ...] | None:
        return self.checkpoint.labels

    @property
    def pooling(self) -> str:
        """How texts become one vector unless told otherwise: as the folder says, else the mean."""
        return self.checkpoint.pooling or "mean"

    @property
    def task(self) -> str | None:
        """What the model was made for: as its training says, else by its heads; None for a plain network."""
        kept = trained(self.folder)
        if kept is not None:
            return kept.task
        return name_of(self.network.heads, encoder=self.network.encoder is not None)

    @property
    def untrained(self) -> bool:
        """Whether the weights are randomly initialized, and were not changed since."""
        return self.checkpoint.untrained and _is_same(self._drawn, _sample(self.network))

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.network.parameters())
        untrained = ", untrained" if self.untrained else ""
        return f"Model({self.family}, {self.task or 'no task'}, {parameters:,} parameters, {self.device}{untrained})"

    def info(self) -> ModelInfo:
        """Shape and size."""
        return ModelInfo.from_model(self)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the model as a folder, which `regard.load` reads back bit for bit.

        transformers' `from_pretrained` opens it too where its families can hold these settings; see docs/families.md.
        """
        target = Path(folder).expanduser()
        checkpoint = replace(self.checkpoint, untrained=self.untrained)
        write_folder(target, checkpoint, overwrite=overwrite, write_extra_files=self._save_beside)
        return target

    def _save_beside(self, fresh: Path) -> None:
        if self.tokenizer is not None:
            self.tokenizer.save(fresh)
        if self.folder is not None and trained(self.folder) is not None:
            shutil.copy2(self.folder / RUN, fresh / RUN)  # its task, and how it came about

    @torch.inference_mode()
    def outputs(
        self,
        ids: Sequence[Sequence[int]],
        *,
        segments: Sequence[Sequence[int]] | None = None,
        decoder_ids: Sequence[Sequence[int]] | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Output]:
        """States and logits of each sequence, in order; encoder-decoders also need what the decoder has so far."""
        sources = check_ids(ids, "ids", vocabulary=self.config.vocabulary, max_tokens=self.config.max_tokens)
        kinds = None if segments is None else check_segments(segments, sources, kinds=self.config.segments)
        both = self.config.kind == "encoder-decoder"
        if both != (decoder_ids is not None):
            raise InputError(
                f"a model of kind {self.config.kind} {'needs' if both else 'takes no'} decoder_ids"
                + (": the target of each sequence so far, beginning with its start token." if both else ".")
            )
        targets = None
        if decoder_ids is not None:
            targets = check_ids(
                decoder_ids, "decoder_ids", vocabulary=self.config.output_vocabulary, max_tokens=self.config.max_tokens
            )
            if len(targets) != len(sources):
                count = pluralize(len(sources), "sequence")
                raise InputError(f"{count} of ids but {len(targets)} of decoder_ids; give one each.")
        found: list[Output | None] = [None] * len(sources)
        sizes = [len(source) + (len(targets[row]) if targets else 0) for row, source in enumerate(sources)]
        for rows in token_batches(sizes, batch_tokens):
            batch = self.make_batch([sources[row] for row in rows], kinds and [kinds[row] for row in rows])
            target = None if targets is None else self.make_batch([targets[row] for row in rows])
            output = self._runner("outputs")(batch) if target is None else self._runner("both")(batch, target)
            for row, one in zip(rows, split(output, batch, target, by_token=self._by_token), strict=True):
                found[row] = one
        return [one for one in found if one is not None]

    @torch.inference_mode()
    def embed(
        self,
        texts: Iterable[str],
        *,
        layer: int | str = -1,
        pool: str | None = "auto",
        normalise: bool = False,
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> np.ndarray | list[np.ndarray]:
        """Vectors of texts: (texts, width), or one (tokens, width) array a text when `pool` is None.

        `layer` counts as the blocks do: 0 is the embeddings, 1 the first block, -1 the last; "mix" is all layers of a
        two-sided network (ELMo), weighed as its task learned to, or their mean. A text longer than the
        network has places for is read in overlapping windows, and each of its tokens is taken from the window that
        shows most around it; `first` is then the mean over the windows' first tokens.
        """
        how = self.pooling if pool == "auto" else pool
        if how is not None and how not in POOLS:
            raise InputError(f'{setting("pool")} "{how}" is not known.{did_you_mean(how, [*POOLS, "auto"])}')
        depth = self._layer(layer)
        texts = check_texts(texts)
        pieces = self._pieces(texts)
        parts: list[list[Tensor]] = [[] for _ in texts]
        counts: list[list[int]] = [[] for _ in texts]
        done = 0
        for rows in token_batches([len(piece.ids) for piece in pieces], batch_tokens):
            chosen = [pieces[row] for row in rows]
            batch = self.make_batch([piece.ids for piece in chosen], [piece.segments for piece in chosen])
            states = batch.split(self._runner(depth)(batch).float())
            for piece, state_TD in zip(chosen, states, strict=True):
                parts[piece.text].append(pooled(state_TD, piece.keep, how).cpu())
                counts[piece.text].append(piece.keep.stop - piece.keep.start)
            done += sum(piece.last for piece in chosen)
            if progress is not None:
                progress(Progress("texts", done, len(texts)))
        vectors = [joined(part, count, how) for part, count in zip(parts, counts, strict=True)]
        for number, vector in enumerate(vectors):
            if not bool(vector.isfinite().all()):
                raise NotFinite(f"text {number}")
        if normalise:
            vectors = [torch.nn.functional.normalize(vector, dim=-1) for vector in vectors]
        return [vector.numpy() for vector in vectors] if how is None else torch.stack(vectors).numpy()

    def search(
        self,
        texts: Iterable[str],
        query: str | Sequence[str],
        *,
        top: int = 10,
        window: int | None = None,
        pool: str = "auto",
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> list[Match] | list[list[Match]]:
        """The texts nearest to a query by the cosine of their vectors, the best first; a list for each of several.

        A text longer than `window` tokens (as many as the model can read) is searched in overlapping passages.
        `regard.search` does the same for a file, and keeps the vectors.
        """
        from regard.predict.search import search_texts

        settings: Any = {"top": top, "window": window, "pool": pool, "batch_tokens": batch_tokens}
        found = search_texts(self, texts, query, **settings, progress=progress)
        return found[0] if isinstance(query, str) else found

    def predict(
        self,
        texts: Iterable[Any] | Any,
        *,
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> list[Answer]:
        """An answer for each: texts, or what the task reads: (first, second), (question, context), words to tag; or for
        each row of a dict of columns, a data frame, a pyarrow table or a `datasets.Dataset`.

        Long texts are read in windows; every answer says in how many. `answer.json()` is a plain dict.
        """
        given = as_list(texts)
        found: list[Answer] = []
        for answer in self.answers(given, batch_tokens=batch_tokens):
            found.append(answer)
            if progress is not None:
                progress(Progress("answers", len(found), len(given)))
        return found

    def answers(self, given: Iterable[Any], *, batch_tokens: int = BATCH_TOKENS) -> Iterator[Answer]:
        """The same, one after the other: neither what is given nor the answers have to fit in memory."""
        from regard.tasks.inference import answer_records

        task, stream = self.task_and_records(given)
        found = answer_records(
            task, self.task_runner(task), stream, self.preprocessing(), device=self.device, batch_tokens=batch_tokens
        )
        return (answer for _, answer in found)

    def task_runner(self, task: Task) -> RunNetwork:
        """The network as a task reads it; a tokenizer of another model is found out here."""
        from regard.tasks.inference import network_runner

        plain = network_runner(self.network, task)

        def run(inputs: Inputs) -> Output:
            for batch, words in (
                (inputs.tokens, self.config.vocabulary),
                (inputs.target, self.config.output_vocabulary),
            ):
                most = -1 if batch is None else int(batch.ids.max())
                if most >= words:
                    raise InputError(token_error("a text", most, words))
            return plain(inputs)

        return run

    def task_and_records(self, given: Iterable[Any]) -> tuple[Task, Iterator[Record]]:
        """The task that answers what is given, and its records."""
        task = task_for(self.checkpoint, self.folder)
        if task.language_model:
            raise no_answers(self.network, task.name)
        items = iter(as_items(given))
        ahead = list(islice(items, 1))
        first = ahead[0] if ahead else None
        if is_pair(first) and trained(self.folder) is None:
            task = task.for_pairs()  # a folder from elsewhere does not say which of the two
        return task, as_records(chain(ahead, items), task.record)

    def preprocessing(self, *, prefix: str | None = None) -> Preprocessing:
        """How texts are read: in the windows the model was trained with, after its `prefix` unless another is told."""
        from regard.checkpoint.reading import preprocessing_of

        kept = trained(self.folder)
        window, overlap = (None, 0.25) if kept is None else (kept.window, kept.overlap)
        return preprocessing_of(
            self.checkpoint, self.require_tokenizer(), window=window, overlap=overlap, prefix=prefix
        )

    def translate(self, texts: Sequence[str], *, batch_tokens: int = 2048, **settings: Any) -> list[str]:
        """The best translation of each text; `settings` are those of `generate`: beams, length_penalty, …"""
        found = self.translations(texts, batch_tokens=batch_tokens, **settings)
        return [best[0].text for best in found]

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
        """The `best` translations of each text, the best first, with their scores, and alignments where asked for.

        prefix: what is put before each text, where a model wants it (T5); as its folder says unless told.
        """
        from regard.predict.translation import translations

        told: Any = {"best": best, "alignment": alignment, "tokens": batch_tokens, "prefix": prefix}
        return translations(self, texts, **told, settings=settings)

    def fill(self, text: str, *, top: int = 5) -> list[Filled] | list[list[Filled]]:
        """The likeliest words in the place of [MASK]; one list a mask where there are several."""
        found = fill(self, text, top=top)
        return found[0] if len(found) == 1 else found

    def next_sentence(self, first: str, second: str) -> float:
        """The probability that the second text comes right after the first, for models that learned to tell (BERT)."""
        return next_sentence(self, first, second)

    def attention(
        self,
        text: str,
        *,
        pair: str | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> AttentionWeights:
        """(heads, tokens, tokens) weights by layer of a text, while the network runs on its fast kernel.

        A text longer than the model's window is read in overlapping windows. Then `.windows` holds the weights of each,
        with its tokens and their offsets; tokens of different windows do not attend to each other.
        """
        from regard.predict.attention import AttentionWeights, attention_windows

        return AttentionWeights([*attention_windows(self, text, pair, layers=layers, heads=heads)])

    def require_tokenizer(self) -> Tokenizer:
        """The tokenizer; an error where the model has none."""
        if self.tokenizer is None and self.folder is not None:
            return Tokenizer.load(self.folder)  # says what was looked for, and what to do about other kinds
        if self.tokenizer is None:
            raise InputError(
                "this model has no tokenizer (an untrained shape has none of its own), so it cannot read texts. "
                "Give ids, load a model that has one, or make it with regard.create(…, tokenizer=folder)."
            )
        return self.tokenizer

    @property
    def _by_token(self) -> bool:
        """Whether logits are of tokens, not of sequences."""
        main = next((name for name in self.network.heads if name not in ("pooled", "next")), None)
        return main in (*TOKEN_HEADS, "sides")

    def _layer(self, layer: int | str) -> int | str | None:
        if isinstance(self.network, RecurrentNetwork):
            raise InputError(f"a recurrent {self.config.kind} makes no vectors of texts; it writes them.")
        depth = self.network.reader.depth
        if layer == MIX and isinstance(self.network, BidirectionalNetwork):
            return MIX
        if isinstance(layer, str):
            raise InputError(
                f'{setting("layer")} "{layer}" was asked for; expected a number, or "{MIX}" of a two-sided network.'
            )
        if not -depth - 1 <= layer <= depth:
            raise InputError(
                f"{setting('layer')} {layer} was asked for; this network has 0 (embeddings) to {depth}, "
                "or -1 for the last."
            )
        counted = layer % (depth + 1)
        return None if counted == depth else counted

    def make_batch(self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None) -> Ragged:
        """Sequences of ids as a batch, with their segments where the network has some."""
        return Ragged.of(ids, segments=segments if self.config.segments > 1 else None)

    def _runner(self, what: int | str | None) -> Callable[..., Any]:
        """The network ("outputs" of one batch or of "both"), or its reader up to a layer, for batches on the host.

        What is compiled or recorded does not see taps that are set later: while any is set, the network itself runs.
        """
        plain: Callable[..., Any] = self.network
        if what == MIX and isinstance(self.network, BidirectionalNetwork):
            plain = self.network.mixture
        elif what not in ("outputs", "both"):
            plain = functools.partial(self.network.reader, layers=what)
        if not self.compile or taps.has_hooks(self.network):
            return lambda *batches: plain(*(batch.to(self.device) for batch in batches))
        if what not in self._runs:
            fast = compiled(plain, dynamic=True)
            if what != "both" and isinstance(self.network, Transformer) and supports_graphs(self.network):
                self._runs[what] = GraphedForward(fast, device=self.device, max_tokens=self.config.max_tokens)
            else:
                self._runs[what] = lambda *batches: fast(*(batch.to(self.device) for batch in batches))
        return self._runs[what]

    def _pieces(self, texts: Sequence[str]) -> list[SequenceWindow]:
        """Every text as one sequence, or as windows where it is too long."""
        tokenizer = self.require_tokenizer()
        pieces: list[SequenceWindow] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):  # offsets and words of all texts at once would be gigabytes
            for row, encoding in enumerate(tokenizer.encode_batch(texts[start : start + TEXTS_AT_ONCE]), start):
                check_encoding(encoding, f"text {row}", self.config.vocabulary)
                pieces += split_into_windows(row, encoding, self.config.max_tokens)
        return pieces


def _sample(network: Network) -> Tensor | None:
    """One number of every weight, which tells whether the network was trained since; None of a mere layout."""
    weights = [weight.detach() for weight in network.parameters()]
    if any(weight.is_meta for weight in weights):
        return None
    return torch.stack([weight.flatten()[0] for weight in weights]).cpu()


def _is_same(before: Tensor | None, now: Tensor | None) -> bool:
    """Whether these are the same numbers, in another number format perhaps."""
    if before is None or now is None:
        return before is now
    return before.shape == now.shape and torch.equal(before.to(now.dtype), now)
