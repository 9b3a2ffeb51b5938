"""The decoding method follows the settings; a generation can be cancelled; tokens so far are kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from tests.serve.helpers import TEXTS, tiny

from regard.checkpoint.source import from_preset
from regard.errors import InputError
from regard.generate.cancel import GenerationCancelled, cancellable, check_cancelled
from regard.generate.decode import decode, prepare_job, stream_decode
from regard.generate.history import History
from regard.generate.settings import DecodingSettings, SpecialIds

# The decoding method is chosen by the settings, and contradictions are found before it runs.


@pytest.fixture(name="network")
def network_fixture():
    return from_preset("tiny-gpt2").network


@pytest.mark.parametrize("options", [{}, {"beams": 2}])
def test_every_method_continues_each_prompt(network, options):
    job = prepare_job(network, DecodingSettings.from_options({"max_tokens": 4, **options}), SpecialIds())
    results = decode(job, [[5, 6, 7], [8]])
    assert [len(candidates) for candidates in results] == [1, 1]
    assert all(len(candidates[0].ids) == 4 for candidates in results)
    assert [candidates[0].prompt for candidates in results] == [0, 1]


def test_a_stream_ends_with_the_result_of_decode(network):
    job = prepare_job(network, DecodingSettings(max_tokens=5), SpecialIds())
    lengths, last = [], []
    for hypothesis in stream_decode(job, [5, 6]):
        assert not torch.is_inference_mode_enabled()
        lengths.append(len(hypothesis.ids))
        last = list(hypothesis.ids)
    assert lengths == sorted(lengths)
    assert last == list(decode(job, [[5, 6]])[0][0].ids)


def test_words_that_contradict_are_refused(network):
    settings = DecodingSettings(max_tokens=3)
    with pytest.raises(InputError, match=r"banned: \[100\] is no run of ids from 0 to 99"):
        prepare_job(network, settings, SpecialIds(), banned=[[100]])
    with pytest.raises(InputError, match=r"contradict each other: the forced \[1, 2, 3\] holds the banned \[2, 3\]"):
        prepare_job(network, settings, SpecialIds(), banned=[[2, 3]], forced=[[1, 2, 3]])
    with pytest.raises(InputError, match=r"the forced words have 4 tokens"):
        prepare_job(network, settings, SpecialIds(), forced=[[1, 2], [3, 4]])


@pytest.mark.parametrize("settings", [{}, {"beams": 2}])
def test_a_generation_ends_between_two_steps(settings: dict[str, Any]) -> None:
    stop = threading.Event()
    with cancellable(stop):
        tiny("gpt2").generate(TEXTS[0], max_tokens=4, **settings)
        stop.set()
        with pytest.raises(GenerationCancelled):
            tiny("gpt2").generate(TEXTS[0], max_tokens=4, **settings)
    check_cancelled()


# The tokens so far of sequences of different lengths.


def test_sequences_grow_by_one_token_each():
    history = History([[5, 6, 7], [8]], new=2, filler=-1, device="cpu")
    assert history.ids_BT.tolist() == [[5, 6, 7, -1, -1], [8, -1, -1, -1, -1]]
    history.add(torch.tensor([1, 2]))
    assert history.ids_BT.tolist() == [[5, 6, 7, 1, -1], [8, 2, -1, -1, -1]]
    assert (history.lengths_B.tolist(), history.max_length) == ([4, 2], 4)


def test_selected_sequences_may_repeat():
    history = History([[5, 6, 7], [8]], new=1, filler=-1, device="cpu")
    history.select(torch.tensor([1, 1, 0]))
    assert history.ids_BT.tolist() == [[8, -1, -1, -1], [8, -1, -1, -1], [5, 6, 7, -1]]
    assert history.lengths_B.tolist() == [1, 1, 3]
