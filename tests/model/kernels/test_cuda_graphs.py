from hypothesis import given
from hypothesis import strategies as st
from tests.presets import transformer_config

from regard.model.kernels.cuda_graphs import GraphShape, pack_batch, round_up, supports_graphs, unpack_batch
from regard.model.transformer import Transformer
from regard.ragged import Ragged

sizes = st.lists(st.integers(1, 512), min_size=1, max_size=40)


@given(st.integers(0, 10**7))
def test_sizes_are_rounded_up_by_at_most_a_sixteenth_or_128_tokens(tokens):
    assert 0 <= round_up(tokens, 128) - tokens <= max(128, tokens / 16)
    assert round_up(round_up(tokens, 128), 128) == round_up(tokens, 128)


def test_few_sizes_serve_many_batches():
    assert len({round_up(tokens, 128) for tokens in range(1, 100_000)}) < 120


@given(sizes)
def test_a_batch_always_fits_its_rounded_shape(lengths):
    batch = Ragged.of([[1] * length for length in lengths])
    shape = GraphShape.rounded(batch, 512)
    filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, max_length=shape.max_length)
    assert filled.tokens == shape.tokens
    assert len(filled) == shape.sequences
    assert shape.max_length <= 512
    assert shape.tokens != shape.sequences


@given(sizes, st.booleans())
def test_a_batch_is_packed_into_one_tensor_and_back(lengths, with_segments):
    rows = [[i + length for i in range(length)] for length in lengths]
    batch = Ragged.of(rows, segments=[[i % 2 for i in row] for row in rows] if with_segments else None)
    shape = GraphShape.rounded(batch, 512)
    filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, max_length=shape.max_length)
    again = unpack_batch(pack_batch(filled), shape)
    assert again.max_length == filled.max_length
    for name in ("ids", "bounds", "positions", "segments"):
        one, other = getattr(again, name), getattr(filled, name)
        assert (one is other is None) or (one.dtype == other.dtype and one.equal(other))


def test_a_network_on_the_cpu_cannot_be_recorded():
    assert not supports_graphs(Transformer(transformer_config("tiny-bert")))
