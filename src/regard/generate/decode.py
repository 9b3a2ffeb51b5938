"""From prompt ids to continuations: check settings and network, then run the decoding method of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from regard.errors import InputError, pluralize, setting
from regard.generate.beam import beam_search
from regard.generate.cancel import check_cancelled
from regard.generate.loop import DecodableNetwork, DecodingJob, Hypothesis, StopCheck, decode_step_by_step
from regard.generate.rules import build_rules
from regard.generate.settings import DecodingSettings, SpecialIds


def decode(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
    """The continuations of each prompt, the best first."""
    with torch.inference_mode():
        if job.settings.beams > 1:
            return beam_search(job, prompts)
        rows: list[Hypothesis] = []
        for step in decode_step_by_step(job, prompts):
            check_cancelled()
            rows = step
    results: list[list[Hypothesis]] = [[] for _ in prompts]
    for row in rows:
        results[row.prompt].append(row)
    return results


def stream_decode(job: DecodingJob, prompt: Sequence[int]) -> Iterator[Hypothesis]:
    """The growing continuation of one prompt, after every step."""
    steps = decode_step_by_step(job, [prompt])
    while True:
        with torch.inference_mode():  # not active while the caller runs
            rows = next(steps, None)
        if rows is None:
            return
        yield rows[0]


def prepare_job(
    network: DecodableNetwork,
    settings: DecodingSettings,
    special: SpecialIds,
    banned: Sequence[Sequence[int]] = (),
    forced: Sequence[Sequence[int]] = (),
    stop_check: StopCheck | None = None,
    log_probs: bool = False,
    device: torch.device | None = None,
    fixed_shapes: bool = False,
) -> DecodingJob:
    """Check network and settings against each other, and put them together."""
    vocabulary = network.config.output_vocabulary
    for name, words in (("banned", banned), ("forced", forced)):
        for word in words:
            if not word or min(word) < 0 or max(word) >= vocabulary:
                raise InputError(f"{setting(name)}: {list(word)} is no run of ids from 0 to {vocabulary - 1}.")
    for word in forced:
        for banned_word in banned:
            size = len(banned_word)
            if any(list(word[i : i + size]) == list(banned_word) for i in range(len(word) - size + 1)):
                raise InputError(
                    f"{setting('forced')} and {setting('banned')} contradict each other: the forced {list(word)} holds "
                    f"the banned {list(banned_word)}. "
                    "Take one of them out."
                )
    if sum(map(len, forced)) > settings.max_tokens:
        raise InputError(
            f"{setting('forced')} and {setting('max_tokens', settings.max_tokens)} contradict each other: the forced "
            f"words have {pluralize(sum(map(len, forced)), 'token')}. Raise {setting('max_tokens')}."
        )
    rules = build_rules(settings, special, banned, forced)
    return DecodingJob(
        network, settings, special, rules, stop_check, log_probs, device or torch.device("cpu"), fixed_shapes
    )
