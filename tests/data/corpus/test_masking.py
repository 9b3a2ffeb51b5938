"""Masking has the shares it says, within three standard errors over a million tokens; pairs are halves and fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.data.corpus.masking import IGNORE, MaskedTokens, MaskSettings, Unit, mask_fixed, mask_tokens, max_masked
from regard.errors import InputError

N, V = 1_000_000, 1000
SPECIAL = (0, 100, 101, 102, 103)
BERT = MaskSettings(mask=103, vocabulary=V, special=SPECIAL)


def text(count: int = N) -> torch.Tensor:
    return torch.randint(V, (count,), generator=torch.Generator().manual_seed(5))


def masked(
    ids: torch.Tensor, mask_settings: MaskSettings = BERT, seed: int = 0, words: torch.Tensor | None = None
) -> MaskedTokens:
    return mask_tokens(ids, mask_settings, words=words, generator=torch.Generator().manual_seed(seed))


def near(result: float, share: float, count: float, *, errors: float = 3) -> bool:
    return abs(result - share) < errors * (share * (1 - share) / count) ** 0.5


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_shares_are_what_they_say(rate: float) -> None:
    ids = text()
    plain = ~torch.isin(ids, torch.tensor(SPECIAL))
    result = masked(ids, replace(BERT, rate=rate))
    count = len(result.positions)
    assert near(count / int(plain.sum()), rate, int(plain.sum()))
    shown = result.ids[result.positions]
    hidden, unchanged = (shown == 103), (shown == result.labels)
    replaced = ~hidden & ~unchanged
    words = V - len(SPECIAL)
    assert near(float(hidden.float().mean()), 0.8, count)
    assert near(float(unchanged.float().mean()), 0.1 + 0.1 / words, count)
    assert near(float(replaced.float().mean()), 0.1 - 0.1 / words, count)
    counts = torch.bincount(shown[replaced], minlength=V).double()
    assert counts[list(SPECIAL)].sum() == 0
    counts = counts[torch.tensor([token for token in range(V) if token not in SPECIAL])]
    expected = counts.sum() / words
    chi = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi - (words - 1)) < 3 * (2 * (words - 1)) ** 0.5, "every word is drawn as often"


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_only_the_chosen_places_change_and_special_tokens_never(unit: Unit) -> None:
    ids = text(50_000)
    starts = torch.rand(len(ids), generator=torch.Generator().manual_seed(1)) < 0.6
    mask_settings = replace(BERT, unit=unit)
    result = masked(ids, mask_settings, words=starts if unit == "word" else None)
    assert (result.labels == ids[result.positions]).all()
    rest = torch.ones(len(ids), dtype=torch.bool)
    rest[result.positions] = False
    assert (result.ids[rest] == ids[rest]).all()
    assert not torch.isin(result.labels, torch.tensor(SPECIAL)).any()
    assert (result.positions.diff() > 0).all()
    again = masked(ids, mask_settings, words=starts if unit == "word" else None)
    other = masked(ids, mask_settings, seed=1, words=starts if unit == "word" else None)
    assert torch.equal(result.ids, again.ids)
    assert not torch.equal(result.ids, other.ids)


def test_words_are_chosen_whole() -> None:
    ids = torch.randint(200, V, (N,), generator=torch.Generator().manual_seed(5))
    starts = torch.rand(N, generator=torch.Generator().manual_seed(1)) < 0.6
    number = starts.long().cumsum(0) - int(starts[0])
    result = masked(ids, replace(BERT, unit="word"), words=starts)
    chosen = torch.zeros(N)
    chosen[result.positions] = 1
    size = torch.bincount(number).double()
    share = torch.bincount(number, weights=chosen.double()) / size
    assert set(share.unique().tolist()) <= {0.0, 1.0}
    spread = (float((size**2).sum()) * 0.15 * 0.85) ** 0.5 / N
    assert abs(len(result.positions) / N - 0.15) < 3 * spread
    assert torch.equal(masked(ids, replace(BERT, unit="word"), words=number).ids, result.ids)


def test_spans_cover_the_rate_at_every_place_and_are_long() -> None:
    ids = torch.randint(200, V, (N,), generator=torch.Generator().manual_seed(5))
    result = masked(ids, replace(BERT, unit="span"))
    chosen = torch.zeros(N)
    chosen[result.positions] = 1
    blocks = chosen.view(-1, 1000).mean(1)  # far longer than a span, so that they are independent
    assert abs(float(blocks.mean()) - 0.15) < 3 * float(blocks.std()) / len(blocks) ** 0.5
    runs = len(result.positions) / int((result.positions.diff() > 1).sum() + 1)
    assert 3.0 < runs < 5.5
    heads = torch.stack([_chosen(ids[:20], seed) for seed in range(1500)]).mean(0)
    assert ((heads - 0.15).abs() < 4 * (0.15 * 0.85 / 1500) ** 0.5).all(), "the first tokens as often as the others"
    one = masked(ids, replace(BERT, unit="span", span_stop=1.0, max_span=1))
    assert near(len(one.positions) / N, 0.15, N)


def _chosen(ids: torch.Tensor, seed: int) -> torch.Tensor:
    chosen = torch.zeros(len(ids))
    chosen[masked(ids, replace(BERT, unit="span"), seed=seed).positions] = 1
    return chosen


@pytest.mark.parametrize("unit", ["token", "word", "span"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_tokens_are_no_trouble(unit: Unit, count: int) -> None:
    words = torch.ones(count, dtype=torch.bool) if unit == "word" else None
    result = masked(torch.full((count,), 7), replace(BERT, unit=unit, rate=0.99), words=words)
    assert len(result.ids) == count
    none = masked(torch.full((5,), 101), replace(BERT, rate=0.99))
    assert len(none.positions) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.0}, "mask_rate is 0"),
        ({"mask_fraction": 0.8, "random_fraction": 0.3}, "add up to at most 1"),
        ({"unit": "letter"}, "Choose one of: token, word, span"),
        ({"mask": 1000}, "must be in a vocabulary of 1000"),
        ({"span_stop": 0.0}, "span_stop is 0 "),
    ],
)
def test_invalid_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(BERT, **change)


def test_words_must_be_given_and_fit() -> None:
    with pytest.raises(InputError, match="needs `words`"):
        masked(text(9), replace(BERT, unit="word"))
    with pytest.raises(InputError, match="9 tokens but 8"):
        masked(text(9), replace(BERT, unit="word"), words=torch.ones(8, dtype=torch.bool))
    with pytest.raises(InputError, match="Leave them out"):
        masked(text(9), words=torch.ones(9, dtype=torch.bool))
    with pytest.raises(InputError, match="flat ids"):
        masked(text(8).view(2, 4))


# a fixed number of places


def fixed(
    ids: torch.Tensor,
    mask_settings: MaskSettings = BERT,
    seed: int = 0,
    *,
    places: int | None = None,
    words: torch.Tensor | None = None,
    valid: torch.Tensor | None = None,
) -> MaskedTokens:
    max_positions = max_masked(len(ids), mask_settings.rate, unit=mask_settings.unit) if places is None else places
    generator = torch.Generator(ids.device).manual_seed(seed)
    return mask_fixed(ids, mask_settings, positions=max_positions, words=words, generator=generator, valid=valid)


def starts_of(ids: torch.Tensor, mask_settings: MaskSettings) -> torch.Tensor | None:
    seed = torch.Generator().manual_seed(1)
    return (torch.rand(len(ids), generator=seed) < 0.6).to(ids.device) if mask_settings.unit == "word" else None


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_a_fixed_number_of_places_holds_what_mask_tokens_chooses(unit: Unit) -> None:
    """With room for all, the same luck chooses the same places: the same distribution."""
    ids, mask_settings = text(), replace(BERT, unit=unit)
    starts = starts_of(ids, mask_settings)
    result, other = fixed(ids, mask_settings, words=starts), masked(ids, mask_settings, words=starts)
    count = len(other.positions)
    assert len(result.positions) == len(result.labels) == max_masked(N, 0.15, unit=unit)
    assert len(result.positions.unique()) == len(result.positions)
    assert torch.equal(result.positions[:count], other.positions)
    assert torch.equal(result.labels[:count], other.labels)
    assert (result.labels[count:] == IGNORE).all()
    rest = torch.ones(N, dtype=torch.bool)
    rest[result.positions[:count]] = False
    assert torch.equal(result.ids[rest], ids[rest])


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_shares_at_a_fixed_number_of_places(unit: Unit) -> None:
    ids, mask_settings = text(), replace(BERT, unit=unit)
    result = fixed(ids, mask_settings, seed=3, words=starts_of(ids, mask_settings))
    unchanged = result.labels != IGNORE
    labels, shown = result.labels[unchanged], result.ids[result.positions[unchanged]]
    units = len(labels) if unit != "span" else int((result.positions[unchanged].diff() > 1).sum())
    errors = 3 if unit != "span" else 4.5  # runs differ in length, so their shares spread more
    hidden, same = shown == 103, shown == labels
    words = V - len(SPECIAL)
    assert near(float(hidden.float().mean()), 0.8, units, errors=errors)
    assert near(float(same.float().mean()), 0.1 + 0.1 / words, units, errors=errors)
    counts = torch.bincount(shown[~hidden & ~same], minlength=V).double()
    assert counts[list(SPECIAL)].sum() == 0
    counts = counts[torch.tensor([token for token in range(V) if token not in SPECIAL])]
    expected = counts.sum() / words
    chi = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi - (words - 1)) < 3 * (2 * (words - 1)) ** 0.5, "every word is drawn as often"


def test_a_surplus_is_left_out_at_random() -> None:
    ids = torch.randint(200, V, (N,), generator=torch.Generator().manual_seed(5))
    result = fixed(ids, places=100_000)
    assert (result.labels != IGNORE).all()
    assert (result.positions.diff() > 0).all()
    assert set(result.positions.tolist()) < set(masked(ids).positions.tolist())
    tenths = torch.bincount(result.positions // (N // 10), minlength=10).double()
    assert float(((tenths - 10_000) ** 2 / 9_000).sum()) < 9 + 3 * 18**0.5, "from all parts alike"


@pytest.mark.parametrize("unit", ["word", "span"])
def test_a_surplus_leaves_out_whole_words_and_spans(unit: Unit) -> None:
    ids, mask_settings = text(20_000), replace(BERT, unit=unit)
    starts = starts_of(ids, mask_settings)
    whole = masked(ids, mask_settings, words=starts)
    bound = starts.long().cumsum(0)[whole.positions] if starts is not None else _run_numbers(whole.positions)
    for places in (0, 1, 2, 1000, 1001, 1002, 1003):
        result = fixed(ids, mask_settings, places=places, words=starts)
        unchanged = torch.isin(whole.positions, result.positions[result.labels != IGNORE])
        share = torch.bincount(bound, weights=unchanged.double()) / torch.bincount(bound).clamp(min=1)
        assert set(share.unique().tolist()) <= {0.0, 1.0}
        assert places - 40 <= int(unchanged.sum()) <= places


def _run_numbers(places: torch.Tensor) -> torch.Tensor:
    return (places.diff(prepend=places[:1]) > 1).long().cumsum(0)


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_only_valid_tokens_are_chosen(unit: Unit) -> None:
    ids, mask_settings = text(20_000), replace(BERT, unit=unit, rate=0.5)
    valid = torch.arange(len(ids)) < 15_000
    result = fixed(ids, mask_settings, words=starts_of(ids, mask_settings), valid=valid)
    chosen = result.positions[result.labels != IGNORE]
    assert valid[chosen].all()
    assert near(len(chosen) / 15_000, 0.5 * (1 - len(SPECIAL) / V), 15_000, errors=10)


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_a_fixed_number_of_places_compiles_whole_and_never_waits(unit: Unit) -> None:
    ids, mask_settings = text(2000), replace(BERT, unit=unit)
    starts, max_positions = starts_of(ids, mask_settings), max_masked(2000, 0.15, unit=unit)
    run = torch.compile(
        lambda tokens, words: mask_fixed(tokens, mask_settings, positions=max_positions, words=words),
        backend="aot_eager",
        fullgraph=True,
    )
    result = run(ids, starts)
    unchanged = result.labels != IGNORE
    assert len(result.positions) == max_positions
    assert (result.labels[unchanged] == ids[result.positions[unchanged]]).all()
    assert near(int(unchanged.sum()) / 2000, 0.15, 2000, errors=10)

    class Names(TorchDispatchMode):
        calls: ClassVar[list[tuple[str, bool]]] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            indices = args[1] if "index" in str(func) and len(args) > 1 and isinstance(args[1], list | tuple) else []
            by_mask = any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in indices)
            self.calls.append((str(func), by_mask))
            return func(*args, **(kwargs or {}))

    with Names() as names:
        mask_fixed(ids, mask_settings, positions=max_positions, words=starts, valid=ids > 5)
    waits = ("nonzero", "_local_scalar_dense", "masked_select", "unique", "lift_fresh", "_to_copy.device")
    assert [name for name, by_mask in names.calls if by_mask or any(wait in name for wait in waits)] == []


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_a_fixed_number_of_places_in_a_cuda_graph(unit: Unit) -> None:
    ids, mask_settings = text(16_384).cuda(), replace(BERT, unit=unit)
    starts, max_positions = starts_of(ids, mask_settings), max_masked(16_384, 0.15, unit=unit)
    call = partial(mask_fixed, ids, mask_settings, positions=max_positions, words=starts)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    counts = []
    for _ in range(3):
        graph.replay()
        unchanged = result.labels != IGNORE
        assert torch.equal(result.labels[unchanged], ids[result.positions[unchanged]])
        assert near(int(unchanged.sum()) / 16_384, 0.15, 16_384, errors=12)
        counts.append(result.positions.clone())
    assert not torch.equal(counts[0], counts[1])
    assert not torch.equal(counts[1], counts[2])


@pytest.mark.parametrize("unit", ["token", "word", "span"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_tokens_and_few_places(unit: Unit, count: int) -> None:
    ids, mask_settings = torch.full((count,), 7), replace(BERT, unit=unit, rate=0.99)
    words = torch.ones(count, dtype=torch.bool) if unit == "word" else None
    for places in range(count + 1):
        result = fixed(ids, mask_settings, places=places, words=words)
        assert len(result.positions) == len(result.labels) == places
        assert len(result.ids) == count
    with pytest.raises(InputError, match=f"{count + 1} positions were requested, but there are {count} tokens"):
        fixed(ids, mask_settings, places=count + 1, words=words)


def test_fixed_positions_suffice_for_what_is_chosen() -> None:
    assert max_masked(16_384, 0.15) == 2688
    assert max_masked(100, 0.15) == 64
    assert max_masked(40, 0.15) == 40
    for unit in ("token", "word", "span"):
        mask_settings, max_positions = replace(BERT, unit=unit), max_masked(4096, 0.15, unit=unit)
        ids = torch.randint(200, V, (4096,), generator=torch.Generator().manual_seed(5))
        starts = starts_of(ids, mask_settings)
        counts = [len(masked(ids, mask_settings, seed, words=starts).positions) for seed in range(300)]
        assert max(counts) <= max_positions < 1.6 * 0.15 * 4096
