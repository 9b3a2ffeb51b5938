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
    ids: torch.Tensor, given: MaskSettings = BERT, seed: int = 0, words: torch.Tensor | None = None
) -> MaskedTokens:
    return mask_tokens(ids, given, words=words, generator=torch.Generator().manual_seed(seed))


def near(found: float, share: float, count: float, *, errors: float = 3) -> bool:
    return abs(found - share) < errors * (share * (1 - share) / count) ** 0.5


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_shares_are_what_they_say(rate: float) -> None:
    ids = text()
    plain = ~torch.isin(ids, torch.tensor(SPECIAL))
    found = masked(ids, replace(BERT, rate=rate))
    count = len(found.positions)
    assert near(count / int(plain.sum()), rate, int(plain.sum()))
    shown = found.ids[found.positions]
    hidden, kept = (shown == 103), (shown == found.labels)
    drawn = ~hidden & ~kept
    words = V - len(SPECIAL)
    assert near(float(hidden.float().mean()), 0.8, count)
    assert near(float(kept.float().mean()), 0.1 + 0.1 / words, count)
    assert near(float(drawn.float().mean()), 0.1 - 0.1 / words, count)
    seen = torch.bincount(shown[drawn], minlength=V).double()
    assert seen[list(SPECIAL)].sum() == 0
    seen = seen[torch.tensor([token for token in range(V) if token not in SPECIAL])]
    expected = seen.sum() / words
    chi = float(((seen - expected) ** 2 / expected).sum())
    assert abs(chi - (words - 1)) < 3 * (2 * (words - 1)) ** 0.5, "every word is drawn as often"


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_only_the_chosen_places_change_and_special_tokens_never(unit: Unit) -> None:
    ids = text(50_000)
    starts = torch.rand(len(ids), generator=torch.Generator().manual_seed(1)) < 0.6
    given = replace(BERT, unit=unit)
    found = masked(ids, given, words=starts if unit == "word" else None)
    assert (found.labels == ids[found.positions]).all()
    rest = torch.ones(len(ids), dtype=torch.bool)
    rest[found.positions] = False
    assert (found.ids[rest] == ids[rest]).all()
    assert not torch.isin(found.labels, torch.tensor(SPECIAL)).any()
    assert (found.positions.diff() > 0).all()
    again = masked(ids, given, words=starts if unit == "word" else None)
    other = masked(ids, given, seed=1, words=starts if unit == "word" else None)
    assert torch.equal(found.ids, again.ids)
    assert not torch.equal(found.ids, other.ids)


def test_words_are_chosen_whole() -> None:
    ids = torch.randint(200, V, (N,), generator=torch.Generator().manual_seed(5))
    starts = torch.rand(N, generator=torch.Generator().manual_seed(1)) < 0.6
    number = starts.long().cumsum(0) - int(starts[0])
    found = masked(ids, replace(BERT, unit="word"), words=starts)
    chosen = torch.zeros(N)
    chosen[found.positions] = 1
    size = torch.bincount(number).double()
    share = torch.bincount(number, weights=chosen.double()) / size
    assert set(share.unique().tolist()) <= {0.0, 1.0}
    spread = (float((size**2).sum()) * 0.15 * 0.85) ** 0.5 / N
    assert abs(len(found.positions) / N - 0.15) < 3 * spread
    assert torch.equal(masked(ids, replace(BERT, unit="word"), words=number).ids, found.ids)


def test_spans_cover_the_rate_at_every_place_and_are_long() -> None:
    ids = torch.randint(200, V, (N,), generator=torch.Generator().manual_seed(5))
    found = masked(ids, replace(BERT, unit="span"))
    chosen = torch.zeros(N)
    chosen[found.positions] = 1
    blocks = chosen.view(-1, 1000).mean(1)  # far longer than a span, so that they are independent
    assert abs(float(blocks.mean()) - 0.15) < 3 * float(blocks.std()) / len(blocks) ** 0.5
    runs = len(found.positions) / int((found.positions.diff() > 1).sum() + 1)
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
    found = masked(torch.full((count,), 7), replace(BERT, unit=unit, rate=0.99), words=words)
    assert len(found.ids) == count
    none = masked(torch.full((5,), 101), replace(BERT, rate=0.99))
    assert len(none.positions) == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rate": 0.0}, "mask_rate is 0"),
        ({"mask_fraction": 0.8, "random_fraction": 0.3}, "add up to at most 1"),
        ({"unit": "letter"}, "Choose one of: token, word, span"),
        ({"mask": 1000}, "must be in a vocabulary of 1000"),
        ({"span_stop": 0.0}, "span_stop is 0 "),
    ],
)
def test_what_cannot_be_is_said(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
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
    given: MaskSettings = BERT,
    seed: int = 0,
    *,
    places: int | None = None,
    words: torch.Tensor | None = None,
    valid: torch.Tensor | None = None,
) -> MaskedTokens:
    room = max_masked(len(ids), given.rate, unit=given.unit) if places is None else places
    generator = torch.Generator(ids.device).manual_seed(seed)
    return mask_fixed(ids, given, positions=room, words=words, generator=generator, valid=valid)


def starts_of(ids: torch.Tensor, given: MaskSettings) -> torch.Tensor | None:
    seed = torch.Generator().manual_seed(1)
    return (torch.rand(len(ids), generator=seed) < 0.6).to(ids.device) if given.unit == "word" else None


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_a_fixed_number_of_places_holds_what_mask_tokens_chooses(unit: Unit) -> None:
    """With room for all, the same luck chooses the same places: the same distribution."""
    ids, given = text(), replace(BERT, unit=unit)
    starts = starts_of(ids, given)
    found, other = fixed(ids, given, words=starts), masked(ids, given, words=starts)
    count = len(other.positions)
    assert len(found.positions) == len(found.labels) == max_masked(N, 0.15, unit=unit)
    assert len(found.positions.unique()) == len(found.positions)
    assert torch.equal(found.positions[:count], other.positions)
    assert torch.equal(found.labels[:count], other.labels)
    assert (found.labels[count:] == IGNORE).all()
    rest = torch.ones(N, dtype=torch.bool)
    rest[found.positions[:count]] = False
    assert torch.equal(found.ids[rest], ids[rest])


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_shares_at_a_fixed_number_of_places(unit: Unit) -> None:
    ids, given = text(), replace(BERT, unit=unit)
    found = fixed(ids, given, seed=3, words=starts_of(ids, given))
    kept = found.labels != IGNORE
    labels, shown = found.labels[kept], found.ids[found.positions[kept]]
    units = len(labels) if unit != "span" else int((found.positions[kept].diff() > 1).sum())
    errors = 3 if unit != "span" else 4.5  # runs differ in length, so their shares spread more
    hidden, same = shown == 103, shown == labels
    words = V - len(SPECIAL)
    assert near(float(hidden.float().mean()), 0.8, units, errors=errors)
    assert near(float(same.float().mean()), 0.1 + 0.1 / words, units, errors=errors)
    seen = torch.bincount(shown[~hidden & ~same], minlength=V).double()
    assert seen[list(SPECIAL)].sum() == 0
    seen = seen[torch.tensor([token for token in range(V) if token not in SPECIAL])]
    expected = seen.sum() / words
    chi = float(((seen - expected) ** 2 / expected).sum())
    assert abs(chi - (words - 1)) < 3 * (2 * (words - 1)) ** 0.5, "every word is drawn as often"


def test_a_surplus_is_left_out_at_random() -> None:
    ids = torch.randint(200, V, (N,), generator=torch.Generator().manual_seed(5))
    found = fixed(ids, places=100_000)
    assert (found.labels != IGNORE).all()
    assert (found.positions.diff() > 0).all()
    assert set(found.positions.tolist()) < set(masked(ids).positions.tolist())
    tenths = torch.bincount(found.positions // (N // 10), minlength=10).double()
    assert float(((tenths - 10_000) ** 2 / 9_000).sum()) < 9 + 3 * 18**0.5, "from all parts alike"


@pytest.mark.parametrize("unit", ["word", "span"])
def test_a_surplus_leaves_out_whole_words_and_spans(unit: Unit) -> None:
    ids, given = text(20_000), replace(BERT, unit=unit)
    starts = starts_of(ids, given)
    whole = masked(ids, given, words=starts)
    bound = starts.long().cumsum(0)[whole.positions] if starts is not None else _run_numbers(whole.positions)
    for places in (0, 1, 2, 1000, 1001, 1002, 1003):
        found = fixed(ids, given, places=places, words=starts)
        kept = torch.isin(whole.positions, found.positions[found.labels != IGNORE])
        share = torch.bincount(bound, weights=kept.double()) / torch.bincount(bound).clamp(min=1)
        assert set(share.unique().tolist()) <= {0.0, 1.0}
        assert places - 40 <= int(kept.sum()) <= places


def _run_numbers(places: torch.Tensor) -> torch.Tensor:
    return (places.diff(prepend=places[:1]) > 1).long().cumsum(0)


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_only_valid_tokens_are_chosen(unit: Unit) -> None:
    ids, given = text(20_000), replace(BERT, unit=unit, rate=0.5)
    valid = torch.arange(len(ids)) < 15_000
    found = fixed(ids, given, words=starts_of(ids, given), valid=valid)
    chosen = found.positions[found.labels != IGNORE]
    assert valid[chosen].all()
    assert near(len(chosen) / 15_000, 0.5 * (1 - len(SPECIAL) / V), 15_000, errors=10)


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_a_fixed_number_of_places_compiles_whole_and_never_waits(unit: Unit) -> None:
    ids, given = text(2000), replace(BERT, unit=unit)
    starts, room = starts_of(ids, given), max_masked(2000, 0.15, unit=unit)
    run = torch.compile(
        lambda tokens, words: mask_fixed(tokens, given, positions=room, words=words),
        backend="aot_eager",
        fullgraph=True,
    )
    found = run(ids, starts)
    kept = found.labels != IGNORE
    assert len(found.positions) == room
    assert (found.labels[kept] == ids[found.positions[kept]]).all()
    assert near(int(kept.sum()) / 2000, 0.15, 2000, errors=10)

    class Names(TorchDispatchMode):
        seen: ClassVar[list[tuple[str, bool]]] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            indices = args[1] if "index" in str(func) and len(args) > 1 and isinstance(args[1], list | tuple) else []
            by_mask = any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in indices)
            self.seen.append((str(func), by_mask))
            return func(*args, **(kwargs or {}))

    with Names() as names:
        mask_fixed(ids, given, positions=room, words=starts, valid=ids > 5)
    waits = ("nonzero", "_local_scalar_dense", "masked_select", "unique", "lift_fresh", "_to_copy.device")
    assert [name for name, by_mask in names.seen if by_mask or any(wait in name for wait in waits)] == []


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_a_fixed_number_of_places_in_a_cuda_graph(unit: Unit) -> None:
    ids, given = text(16_384).cuda(), replace(BERT, unit=unit)
    starts, room = starts_of(ids, given), max_masked(16_384, 0.15, unit=unit)
    call = partial(mask_fixed, ids, given, positions=room, words=starts)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    seen = []
    for _ in range(3):
        graph.replay()
        kept = found.labels != IGNORE
        assert torch.equal(found.labels[kept], ids[found.positions[kept]])
        assert near(int(kept.sum()) / 16_384, 0.15, 16_384, errors=12)
        seen.append(found.positions.clone())
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


@pytest.mark.parametrize("unit", ["token", "word", "span"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_tokens_and_few_places(unit: Unit, count: int) -> None:
    ids, given = torch.full((count,), 7), replace(BERT, unit=unit, rate=0.99)
    words = torch.ones(count, dtype=torch.bool) if unit == "word" else None
    for places in range(count + 1):
        found = fixed(ids, given, places=places, words=words)
        assert len(found.positions) == len(found.labels) == places
        assert len(found.ids) == count
    with pytest.raises(InputError, match=f"{count + 1} positions were requested, but there are {count} tokens"):
        fixed(ids, given, places=count + 1, words=words)


def test_room_for_what_is_chosen() -> None:
    assert max_masked(16_384, 0.15) == 2688
    assert max_masked(100, 0.15) == 64
    assert max_masked(40, 0.15) == 40
    for unit in ("token", "word", "span"):
        given, room = replace(BERT, unit=unit), max_masked(4096, 0.15, unit=unit)
        ids = torch.randint(200, V, (4096,), generator=torch.Generator().manual_seed(5))
        starts = starts_of(ids, given)
        counts = [len(masked(ids, given, seed, words=starts).positions) for seed in range(300)]
        assert max(counts) <= room < 1.6 * 0.15 * 4096
