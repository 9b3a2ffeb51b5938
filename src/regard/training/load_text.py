"""Plain text for pretraining: its tokenizer, and its tokens in a store on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.source import find_folder, from_preset
from regard.config import Config
from regard.data.corpus.store_files import building_folder, remove_store
from regard.data.corpus.text_source import Objective, Stream, split_corpus
from regard.data.corpus.token_store import Corpus
from regard.errors import InputError, pluralize, setting
from regard.progress import Progress
from regard.text.learn import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.training.from_scratch.vocabulary import MIN_VOCABULARY, open_tokenizer, vocabulary_errors, vocabulary_of
from regard.training.load_data import DEV_FRACTION
from regard.training.output.metrics_log import TrainingEvent
from regard.training.run import RunContext
from regard.training.settings import Settings

BYTES_PER_TOKEN = 40  # of text, for each token of a vocabulary that is learned from it
Files = Sequence[str | Path]
# By objective: the kind of network it is for, the head that learns it, and what that head predicts.
OBJECTIVE_HEADS = {
    "mlm": ("encoder", "masked", "masked tokens"),
    "mlm+nsp": ("encoder", "next", "next sentences"),
    "causal": ("decoder", "language", "next tokens"),
    "bidirectional": ("encoder", "sides", "the tokens on both sides"),
}


@dataclass(frozen=True)
class TextData:
    """The tokens to train on and those to validate on; `dev` is empty where nothing is scored."""

    train: Stream
    dev: Stream | tuple[()]
    reason: str  # the text in words: its size
    split_off: bool  # whether dev was split off from the training text
    fingerprint: str  # the same for the same files and tokenizer


@dataclass(frozen=True)
class TextFiles:
    """The files of a pretraining, and how they are read."""

    train: Files
    dev: Files | None
    objective: Objective
    store: Path
    encoding: str | None = None
    overwrite: bool = False

    def remove_store(self) -> None:
        """Remove the tokenized text, and its folder unless something else is in it."""
        for name in ("train", "dev"):
            remove_store(self.store / name)
            shutil.rmtree(building_folder(self.store / name), ignore_errors=True)
        with contextlib.suppress(OSError):
            self.store.rmdir()


def load_text(files: TextFiles, tokenizer: Tokenizer, settings: Settings, context: RunContext) -> TextData:
    """Tokenize the files into a store, or open it, and split off validation documents."""
    corpus = _build(files, files.train, "train", tokenizer, context)
    fraction = DEV_FRACTION if settings.dev_fraction is None else settings.dev_fraction
    fraction = 0.0 if files.dev is not None else fraction
    min_documents = 2 if files.objective == "mlm+nsp" else 1
    train, dev = split_corpus(corpus, fraction=fraction, seed=settings.seed, min_documents=min_documents)
    known = [corpus.index["files"], corpus.index["tokenizer"]]
    if files.dev is not None:
        paths = [files.dev] if isinstance(files.dev, str | Path) else files.dev
        other = _build(files, paths, "dev", tokenizer, context)
        dev = split_corpus(other, fraction=0.0)[0]
        known.append(other.index["files"])
    fingerprint = hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=16).hexdigest()
    reason = f"plain text: {pluralize(len(corpus), 'document')}, {pluralize(int(corpus.bounds[-1]), 'token')}"
    return TextData(train, () if dev is None else dev, reason, files.dev is None, fingerprint)


def _build(files: TextFiles, paths: Files, name: str, tokenizer: Tokenizer, context: RunContext) -> Corpus:
    """A token store; the main process builds it while the others wait."""
    world = context.world
    files.store.mkdir(parents=True, exist_ok=True)

    def report(bytes_read: Progress) -> None:
        context.report(TrainingEvent("read", bytes_read.done, bytes_read.total, bytes_read.values))

    if not world.is_main_process:
        world.barrier()
    corpus = Corpus.build(
        paths,
        tokenizer,
        files.store / name,
        sentences=files.objective == "mlm+nsp",
        end=_document_end(tokenizer) if files.objective == "causal" else None,
        encoding=files.encoding,
        progress=report if world.is_main_process else None,
        overwrite=files.overwrite and world.is_main_process,
    )
    if world.is_main_process:
        world.barrier()
    return corpus


def _document_end(tokenizer: Tokenizer) -> int | None:
    """The token after a document: end of text, or, in a vocabulary without it, the line break."""
    if tokenizer.eos is not None:
        return tokenizer.eos
    (line,) = tokenizer.ids_batch(["\n"], special=False)
    return line[0] if len(line) == 1 and line[0] != tokenizer.unk else None


def text_tokenizer(files: TextFiles, *, preset: str | None, start: Any, tokenizer: Any) -> Tokenizer:
    """The tokenizer of the model to start from, the one that was given, or one learned from the files."""
    if start is not None:
        return open_tokenizer(find_folder(start))
    assert preset is not None
    shape = from_preset(preset, weights=False)
    check_objective(shape.family, shape.config, files.objective)  # before a vocabulary is learned
    if tokenizer is None:
        tokenizer = _learned_tokenizer(files, preset)
    return _for_objective(open_tokenizer(tokenizer), files.objective)


def _learned_tokenizer(files: TextFiles, preset: str) -> Tokenizer:
    """A vocabulary learned from the files: as large as the preset's, smaller for little text."""
    vocabulary = vocabulary_of(preset)
    paths = [files.train] if isinstance(files.train, str | Path) else files.train
    text_bytes = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
    with vocabulary_errors(preset):
        return train_tokenizer(
            paths,
            kind=vocabulary.kind,
            size=min(vocabulary.size, max(text_bytes // BYTES_PER_TOKEN, MIN_VOCABULARY)),
            special_tokens=vocabulary.special_tokens,
            encoding=files.encoding,
        )


def _for_objective(tokenizer: Tokenizer, objective: str) -> Tokenizer:
    """A decoder reads plain text up to an end token; other special tokens around a text are left out."""
    before, after = tokenizer.surrounding_ids
    plain = not before and after in ((), (tokenizer.eos,))
    return tokenizer if plain or objective != "causal" else tokenizer.without_special_tokens()


def check_objective(family: str, config: Config, objective: str) -> None:
    """Whether this kind of network can learn the objective, and folders of its family can store the head."""
    family_heads = family_for(family, config).heads
    kind, head, predicts = OBJECTIVE_HEADS[objective]
    possible = [
        name for name, (needs, needed, _) in OBJECTIVE_HEADS.items() if needs == config.kind and needed in family_heads
    ]
    fix = f"Use objective {possible[0]}." if possible else "It has no pretraining here."
    if config.kind != kind:
        raise InputError(
            f'{setting("objective")} "{objective}" is for networks of kind {kind}, but this one ({family}) is of '
            f"kind {config.kind}. {fix}"
        )
    if head not in family_heads:
        raise InputError(f"models of the family {family} have no head for {predicts}. {fix}")
