from hypothesis import given
from hypothesis import strategies as st

from regard.model.presets import PRESETS
from regard.model.replay import Shape, replayable, rounded
from regard.model.transformer import Transformer
from regard.ragged import Ragged

sizes = st.lists(st.integers(1, 512), min_size=1, max_size=40)


@given(st.integers(0, 10**7))
def test_sizes_are_rounded_up_by_at_most_an_eighth_or_255_tokens(tokens):
    assert 0 <= rounded(tokens) - tokens <= max(256, tokens / 8)
    assert rounded(rounded(tokens)) == rounded(tokens)


def test_few_sizes_serve_many_batches():
    assert len({rounded(tokens) for tokens in range(1, 100_000)}) < 60


@given(sizes)
def test_a_batch_always_fits_its_rounded_shape(lengths):
    batch = Ragged.of([[1] * length for length in lengths])
    shape = Shape.of(batch, 512)
    filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, longest=shape.longest)
    assert filled.tokens == shape.tokens
    assert len(filled) == shape.sequences
    assert shape.longest <= 512


def test_a_network_on_the_cpu_cannot_be_recorded():
    assert not replayable(Transformer(PRESETS["tiny-bert"].config))
