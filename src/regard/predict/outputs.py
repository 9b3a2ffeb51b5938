"""Hidden states and logits of sequences of ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.config import Config
from regard.data.batching.sequences import token_batches
from regard.data.inputs import check_ids, check_segments
from regard.errors import InputError, pluralize
from regard.model.heads import TOKEN_HEADS
from regard.model.network import Network
from regard.model.transformer import Output
from regard.predict.runner import NetworkRunner
from regard.ragged import Ragged

IdRows = Sequence[Sequence[int]]


@torch.inference_mode()
def sequence_outputs(
    runner: NetworkRunner,
    ids: IdRows,
    *,
    segments: IdRows | None,
    decoder_ids: IdRows | None,
    batch_tokens: int,
) -> list[Output]:
    """One `Output` per sequence, in order. An encoder-decoder also needs the target so far of each sequence."""
    network = runner.network
    config = network.config
    sources = check_ids(ids, "ids", vocabulary=config.vocabulary, max_tokens=config.max_tokens)
    kinds = None if segments is None else check_segments(segments, sources, kinds=config.segments)
    targets = _check_targets(config, decoder_ids, len(sources))
    lengths = [len(source) for source in sources]
    if targets is not None:
        lengths = [length + len(target) for length, target in zip(lengths, targets, strict=True)]
    outputs: list[Output | None] = [None] * len(sources)
    for rows in token_batches(lengths, batch_tokens):
        batch = runner.make_batch([sources[row] for row in rows], kinds and [kinds[row] for row in rows])
        if targets is None:
            target = None
            output = runner.outputs()(batch)
        else:
            target = runner.make_batch([targets[row] for row in rows])
            output = runner.outputs_with_target()(batch, target)
        singles = split_output(output, batch, target, by_token=_logits_by_token(network))
        for row, single in zip(rows, singles, strict=True):
            outputs[row] = single
    return [output for output in outputs if output is not None]


def _check_targets(config: Config, decoder_ids: IdRows | None, count: int) -> IdRows | None:
    """The checked `decoder_ids`; an error where they are missing, not needed or of another number."""
    encoder_decoder = config.kind == "encoder-decoder"
    if encoder_decoder and decoder_ids is None:
        raise InputError(
            f"a model of kind {config.kind} needs decoder_ids: the target of each sequence so far, beginning with its "
            "start token."
        )
    if not encoder_decoder and decoder_ids is not None:
        raise InputError(f"a model of kind {config.kind} takes no decoder_ids.")
    if decoder_ids is None:
        return None
    vocabulary = config.output_vocabulary
    targets = check_ids(decoder_ids, "decoder_ids", vocabulary=vocabulary, max_tokens=config.max_tokens)
    if len(targets) != count:
        raise InputError(f"{pluralize(count, 'sequence')} of ids but {len(targets)} of decoder_ids; give one each.")
    return targets


def _logits_by_token(network: Network) -> bool:
    """Whether the main head has logits for every token, not for every sequence."""
    main = next((name for name in network.heads if name not in ("pooled", "next")), None)
    return main in (*TOKEN_HEADS, "sides")


def split_output(output: Output, batch: Ragged, target: Ragged | None, *, by_token: bool) -> list[Output]:
    """The output of a batch as one output per sequence."""
    own = batch if target is None else target
    hidden = own.split(output.hidden)
    memory: Sequence[Tensor | None] = [None] * len(batch)
    if output.memory is not None:
        memory = batch.split(output.memory)
    logits: Sequence[Tensor | None] = [None] * len(own)
    if output.logits is not None:
        logits = own.split(output.logits) if by_token else list(output.logits)
    singles = [Output(*parts[:2], memory=parts[2]) for parts in zip(hidden, logits, memory, strict=True)]
    if output.pooled is not None:
        singles = [replace(one, pooled=vector) for one, vector in zip(singles, output.pooled, strict=True)]
    if output.next_sentence is not None:
        singles = [
            replace(one, next_sentence=logits_C) for one, logits_C in zip(singles, output.next_sentence, strict=True)
        ]
    return singles
