from dataclasses import replace as changed

import pytest
import torch
from tests.presets import transformer_config

from regard.checkpoint.families import FAMILIES, PRESETS
from regard.config import SCORES, AttentionConfig, PositionConfig
from regard.errors import InputError
from regard.model import hooks as taps
from regard.model.hooks import attention, attention_weights, hook_names, record, replace
from regard.model.kernels.dense import AttentionCall, sequence_weights
from regard.model.kernels.layout import Layout, Mask
from regard.model.scores import build_score
from regard.ragged import Ragged

TINY = [name for name, made in PRESETS.items() if name.startswith("tiny-") and FAMILIES[made.family].in_transformers]
BOTH = ("tiny-t5", "tiny-bart", "tiny-marian", "tiny-transformer", "tiny-pegasus")
PARTS = ["attention", "attention.q", "attention.k", "attention.v", "attention.mix", "feedforward"]


def run(network, *batches):
    return network(*batches).hidden


def inputs(name, tokens):
    return (tokens([4, 9]), tokens([6, 3], seed=1)) if name in BOTH else (tokens([4, 9]),)


@pytest.mark.parametrize("name", TINY)
@torch.no_grad()
def test_every_documented_name_exists_and_recording_changes_nothing(build, tokens, name):
    network, arguments = build(name), inputs(name, tokens)
    stack = "decoder" if network.decoder is not None else "encoder"
    layer = f"{stack}.layers.0"
    expected = [f"{stack}.embeddings", layer, *(f"{layer}.{part}" for part in PARTS)]
    expected += [f"{layer}.cross{end}" for end in ("", ".q", ".k", ".v", ".mix")] if name in BOTH else []
    assert set(expected) <= set(hook_names(network))
    plain = run(network, *arguments)
    with record(network, *expected) as recorded:
        assert torch.equal(run(network, *arguments), plain)
    assert set(recorded) == set(expected)


@pytest.mark.parametrize("name", ["tiny-albert", "tiny-t5", "tiny-llama"])
@torch.no_grad()
def test_everything_that_has_a_name_can_be_recorded(build, tokens, name):
    network = build(name, {"pooled": 0, "token": 3, "masked": 0} if name == "tiny-albert" else None)
    arguments = [changed(batch, segments=batch.ids % 2) for batch in inputs(name, tokens)]
    with record(network, *hook_names(network)) as recorded:
        run(network, *arguments)
    assert set(recorded) == set(hook_names(network))


@torch.no_grad()
def test_what_is_recorded_is_what_it_says(build, tokens):
    network, batch = build("tiny-bert"), tokens([4, 9])
    with record(network, "encoder.embeddings", "encoder.layers.*", "encoder.layers.0.attention") as recorded:
        output = network(batch)
    assert len(recorded) == 4
    assert torch.equal(recorded["encoder.layers.1"], output.hidden)
    block, stream = network.encoder.layers[0], recorded["encoder.embeddings"]
    after = block.attention_norm(stream + recorded["encoder.layers.0.attention"])
    torch.testing.assert_close(block.feedforward_norm(after + block.feedforward(after)), recorded["encoder.layers.0"])


@torch.no_grad()
def test_shared_layers_are_seen_once_for_each_run(build, tokens):
    network, batch = build("tiny-albert"), tokens([5])
    with record(network, "encoder.layers.0") as recorded:
        output = network(batch)
    assert len(recorded.runs("encoder.layers.0")) == 3
    assert torch.equal(recorded.runs("encoder.layers.0")[-1], output.hidden)
    with pytest.raises(KeyError, match=r'Did you mean "encoder.layers.0"'):
        recorded.runs("encoder.layer.0")


def test_recording_keeps_the_graph_only_if_set(build, tokens):
    network, batch = build("tiny-bert"), tokens([4])
    with record(network, "encoder.layers.0") as recorded:
        network(batch)
    assert not recorded["encoder.layers.0"].requires_grad
    with record(network, "encoder.layers.0", detach=False) as recorded:
        hidden = network(batch).hidden
    (grad,) = torch.autograd.grad(hidden[0, 0], recorded["encoder.layers.0"])
    assert grad.abs().sum() > 0


@torch.no_grad()
def test_a_head_taken_out_through_mix_is_a_head_whose_output_rows_are_zero(build, tokens):
    network, batch = build("tiny-bert"), tokens([4, 9])
    keep = torch.ones(4, 1)
    keep[2] = 0
    with replace(network, {"encoder.layers.1.attention.mix": lambda x: x * keep}):
        without = run(network, batch)
    assert (without - run(network, batch)).abs().max() > 1e-3
    network.encoder.layers[1].attention.out.weight[:, 16:24] = 0
    torch.testing.assert_close(run(network, batch), without)


@torch.no_grad()
def test_patching_the_stream_of_another_run_gives_the_result_of_the_other(build, tokens):
    network, one, other = build("tiny-gpt2"), tokens([5]), tokens([5], seed=1)
    with record(network, "decoder.layers.0") as recorded:
        expected = run(network, other)
    with replace(network, {"decoder.layers.0": recorded["decoder.layers.0"]}):
        assert torch.equal(run(network, one), expected)
    assert not torch.equal(run(network, one), expected)


def test_hooks_are_gone_after_the_block_also_when_it_fails(build, tokens):
    network, batch = build("tiny-bert"), tokens([3])
    plain = run(network, batch)
    with pytest.raises(ZeroDivisionError), record(network, "encoder.layers.0") as recorded:
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), replace(network, {"encoder.layers.0": lambda x: x * 0}):
        raise ZeroDivisionError
    with pytest.raises(InputError, match="named"), replace(network, {"encoder.layers.0": plain * 0, "no": plain}):
        pass
    with pytest.raises(ZeroDivisionError), taps.record_attention_inputs(network, ["encoder.layers.0.attention"]):
        raise ZeroDivisionError
    assert torch.equal(run(network, batch), plain)
    assert len(recorded) == 0
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def test_an_unknown_name_gives_the_nearest(build):
    network = build("tiny-bert")
    with (
        pytest.raises(
            InputError, match=r'named "encoder.layer.0.attention". Did you mean "encoder.layers.0.attention"'
        ),
        record(network, "encoder.layer.0.attention"),
    ):
        pass


def test_a_replacement_of_another_shape_is_an_error(build, tokens):
    network = build("tiny-bert")
    with (
        replace(network, {"encoder.layers.0": torch.zeros(2, 32)}),
        pytest.raises(InputError, match=r"has the shape \(2, 32\), expected \(3, 32\)"),
    ):
        network(tokens([3]))


def naive(q_THK, k_SGK, call, row):
    """Pair by pair, as slowly and plainly as can be."""
    (t, heads, _), s, share = q_THK.shape, k_SGK.shape[0], q_THK.shape[1] // k_SGK.shape[1]
    out = torch.zeros(heads, t, s)
    for h in range(heads):
        for i in range(t):
            place, recorded = i + s - t, {}
            for j in range(s):
                index = [torch.tensor(x) for x in (row, h, place, j)]
                if call.mask.allowed(*index):
                    pair = q_THK[i, h].view(1, 1, -1), k_SGK[j, h // share].view(1, 1, -1)
                    score = call.score.score_pairs(*pair, torch.tensor([h])).item()
                    middle = 0 if call.bias_HR is None else call.bias_HR.shape[1] // 2
                    recorded[j] = score + (0.0 if call.bias_HR is None else call.bias_HR[h, j - place + middle].item())
            total = sum(torch.tensor(x).exp().item() for x in recorded.values())
            best = max(recorded, key=recorded.__getitem__, default=None)
            for j, score in recorded.items():
                soft = torch.tensor(score).exp().item() / total
                out[h, i, j] = soft if call.select == "soft" else float(j == best)
    return out


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("select", ["soft", "hard"])
@pytest.mark.parametrize("mask", [Mask(), Mask(1, 0), Mask(function=lambda b, h, q, k: (q + k + h + b) % 2 == 0)])
def test_weights_equal_the_naive_softmax(monkeypatch, score, select, mask):
    monkeypatch.setattr(taps, "TILE", 8)
    torch.manual_seed(0)
    q, k = torch.randn(7, 4, 6), torch.randn(6, 2, 6)
    made = build_score(score, 4, 6, kv_heads=2)
    for weight in made.parameters():
        torch.nn.init.normal_(weight)
    q, k = made(q, k)
    layout = Layout(torch.tensor([0, 3, 7]), torch.tensor([0, 4, 6]), 4, 4)
    for bias in (None, torch.randn(4, 9)):
        call = AttentionCall(layout, mask, made, select, bias)
        for row in (0, 1):
            queries, keys = layout.spans(row)
            expected = naive(q[queries], k[keys], call, row)
            torch.testing.assert_close(attention_weights(q, k, call, sequence=row), expected, rtol=1e-5, atol=1e-5)
            chosen = attention_weights(q, k, call, sequence=row, heads=[3, 1])
            torch.testing.assert_close(chosen, expected[[3, 1]], rtol=1e-5, atol=1e-5)


def test_a_long_sequence_is_explained_in_bounded_tiles(monkeypatch):
    """4,096 tokens of one head: the answer has 64 MiB, and no tile on the way more than the budget of numbers."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 4096, 2, 8)
    sizes, explain = [], sequence_weights

    def watched(*args, **more):
        tile = explain(*args, **more)
        sizes.append(tile.numel())
        return tile

    monkeypatch.setattr(taps, "sequence_weights", watched)
    call = AttentionCall(Layout.for_self_attention(torch.tensor([0, 4096]), 4096), Mask(right=0))
    result = attention_weights(q, k, call, sequence=0, heads=[1])
    assert result.shape == (1, 4096, 4096)
    assert sum(sizes) == result.numel()
    assert max(sizes) <= taps.TILE < result.numel()
    torch.testing.assert_close(result.sum(-1), torch.ones(1, 4096))
    torch.testing.assert_close(result[0, 9, :10], (q[9, 1] @ k[:10, 1].T).softmax(-1))


BERT = transformer_config("tiny-bert")
MADE = {
    "sliding": changed(
        transformer_config("tiny-llama"), attention=AttentionConfig(4, kv_heads=1, window=2, global_every=0)
    ),
    "alibi": changed(BERT, positions=PositionConfig("alibi", max_tokens=None)),
    **{score: changed(BERT, attention=AttentionConfig(4, score=score)) for score in SCORES},
    "hard": changed(BERT, attention=AttentionConfig(4, select="hard")),
}


@pytest.mark.parametrize("name", [*TINY, *MADE])
@torch.no_grad()
def test_recomputed_weights_sum_to_one_and_bring_back_what_the_kernel_did(build, tokens, name):
    network, arguments = build(MADE.get(name, name)), inputs(name, tokens)
    kinds = [("main", False), ("encoder", False), ("decoder", True)] if name in BOTH else [("main", False)]
    for stack, cross in kinds:
        result = attention(
            network, arguments[0], target=arguments[1] if len(arguments) > 1 else None, stack=stack, cross=cross
        )
        part = network.main if stack == "main" else getattr(network, stack)
        where = "encoder" if part is network.encoder else "decoder"
        kind = "cross" if cross else "attention"
        with record(network, f"{where}.layers.*.{kind}.v", f"{where}.layers.*.{kind}.mix") as recorded:
            network(*arguments)
        values = arguments[1] if stack != "encoder" and len(arguments) > 1 and not cross else arguments[0]
        queries = arguments[1] if stack != "encoder" and len(arguments) > 1 else arguments[0]
        assert list(result) == list(range(part.depth))
        for i, rows in result.items():
            path, run_of = f"{where}.layers.{part.layer_index(i)}.{kind}", i if part.distinct < part.depth else 0
            mixed = queries.split(recorded.runs(f"{path}.mix")[run_of])
            v = values.split(recorded.runs(f"{path}.v")[run_of])
            assert len(rows) == 2
            for w_HTS, v_SGK, mixed_THK in zip(rows, v, mixed, strict=True):
                v_HSK = v_SGK.transpose(0, 1).repeat_interleave(4 // v_SGK.shape[1], 0)
                assert w_HTS.shape == (4, len(mixed_THK), len(v_SGK))
                torch.testing.assert_close(w_HTS.sum(-1), torch.ones(w_HTS.shape[:2]))
                torch.testing.assert_close((w_HTS @ v_HSK).transpose(0, 1), mixed_THK, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_attention_of_chosen_layers_heads_and_sequences_is_that_part_of_all(build, tokens):
    network, batch = build("tiny-modernbert"), tokens([12, 9, 1])
    every = attention(network, batch)
    some = attention(network, batch, layers=[-1, 0], heads=[2, -4], sequences=[1])
    assert list(some) == [3, 0]
    for layer, (result,) in some.items():
        torch.testing.assert_close(result, every[layer][1][[2, 0]])
    assert every[0][0].count_nonzero() == 4 * 12 * 12
    assert every[1][0][0, 0].count_nonzero() == 5  # a local layer with a window of 4 looks at itself and 4 to the right


@torch.no_grad()
def test_attention_while_stepping_with_a_cache_is_that_of_the_last_query(build, tokens):
    network, batch = build("tiny-llama"), tokens([5, 3])
    expected = attention(network, batch, layers=[1])[1]
    cache = network.new_cache(sequences=2)
    rows = batch.split(batch.ids)
    of = type(batch).of
    network.step(of([row[:-1].tolist() for row in rows]), cache)
    path = "decoder.layers.1.attention"
    with taps.record_attention_inputs(network, [path]) as recorded:
        network.step(of([row[-1:].tolist() for row in rows]), cache)
    for b in (0, 1):
        result = attention_weights(*recorded[path][0], sequence=b)
        torch.testing.assert_close(result, expected[b][:, -1:])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"layers": [2]}, "layer 2 does not exist: there are 2"),
        ({"heads": [4]}, "head 4 does not exist: there are 4"),
        ({"sequences": [1]}, "sequence 1 does not exist: there are 1"),
        ({"stack": "decoder"}, 'no stack "decoder". Did you mean "encoder"'),
        ({"cross": True}, "only the decoder of an encoder-decoder has cross-attention"),
    ],
)
def test_attention_that_does_not_exist_is_an_error(build, tokens, more, message):
    with pytest.raises(InputError, match=message):
        attention(build("tiny-bert"), tokens([3]), **more)


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])
@torch.no_grad()
def test_weights_of_a_step_are_the_last_of_the_whole(build, tokens, name):
    """Also where the keys lie in the slots of a cache, by heads and not by tokens."""
    network, batch = build(name), tokens([4, 9])
    path = "decoder.layers.1.attention"
    with taps.record_attention_inputs(network, [path]) as recorded:
        network(batch)
        cache = network.new_cache(sequences=2)
        rows = batch.split(batch.ids)
        for part in (slice(None, -1), slice(-1, None)):
            network.step(Ragged.of([row[part].tolist() for row in rows]), cache)
    whole, _, step = recorded[path]
    for row in range(2):
        for heads in (None, [3, 1]):
            expected = attention_weights(*whole, sequence=row, heads=heads)[:, -1:]
            torch.testing.assert_close(
                attention_weights(*step, sequence=row, heads=heads), expected, rtol=1e-5, atol=1e-6
            )
