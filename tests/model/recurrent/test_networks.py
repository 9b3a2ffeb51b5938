"""Recurrent networks, their alignment, and the plain loops that they equal."""

import pytest
import torch
from tests.model.recurrent.build import SOURCE, TARGET, build

from regard.errors import InputError
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.recurrent.unrolled import Unrolled
from regard.ragged import Ragged

# Recurrent encoder-decoders against a plain loop: one sequence, one word, one source token at a time.


# The plain loop


def cell(layers, number, direction, x, state):
    """One step of a GRU or an LSTM, as the papers have it."""
    end = f"l{number}" + ("_reverse" if direction else "")
    weights = [getattr(layers, f"{name}_{end}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    read, from_state = weights[0] @ x + weights[2], weights[1] @ state[0] + weights[3]
    if isinstance(layers, torch.nn.GRU):
        (r, z, n), (hr, hz, hn) = read.chunk(3), from_state.chunk(3)
        update = torch.sigmoid(z + hz)
        return ((1 - update) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + update * state[0],)
    i, f, g, o = (read + from_state).chunk(4)
    memory = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(memory), memory


def encode(network, ids):
    layers = network.encoder.layers.cells
    parts, size = (1 if isinstance(layers, torch.nn.GRU) else 2), layers.hidden_size
    xs, ends = [network.encoder.tokens.weight[token] for token in ids], []
    for number in range(network.config.layers):
        sides = []
        for direction in range(2 if layers.bidirectional else 1):
            state = (torch.zeros(size, dtype=torch.float64),) * parts
            recorded: list[torch.Tensor] = [torch.empty(0)] * len(xs)
            for place in reversed(range(len(xs))) if direction else range(len(xs)):
                state = cell(layers, number, direction, xs[place], state)
                recorded[place] = state[0]
            sides.append((recorded, state))
        xs = [torch.cat([recorded[place] for recorded, _ in sides]) for place in range(len(xs))]
        ends.append(tuple(torch.cat([state[part] for _, state in sides]) for part in range(parts)))
    return xs, ends


def look(network, h, memory, place):
    """The weights of one state, a source token at a time."""
    config, align = network.config, network.decoder.align
    center, width = min(place, len(memory) - 1), config.window
    if align.outer is not None:
        inner = torch.tanh(align.inner.weight @ h)
        center = torch.sigmoid(align.outer.weight[0] @ inner) * (len(memory) - 1)
    scores = []
    for where, m in enumerate(memory):
        if config.score == "dot":
            score = (h * m).sum()
        elif config.score == "bilinear":
            score = h @ align.score.weight[0] @ m
        else:
            score = align.score.weight[0] @ torch.tanh(h @ align.score.query[0] + m @ align.score.key[0])
        if align.outer is not None:
            score = score - (where - center) ** 2 / (2 * (width / 2) ** 2)
        if width is not None and abs(where - (center.item() if torch.is_tensor(center) else center)) > width:
            score = torch.tensor(float("-inf"), dtype=torch.float64)
        scores.append(score)
    total = sum(score.exp() for score in scores)
    return [score.exp() / total for score in scores]


def plain(network, source, target):
    """Logits of one pair, and its alignment."""
    memory, states = encode(network, source)
    feed, messages, rows = torch.zeros(network.config.width, dtype=torch.float64), [], []
    for place, token in enumerate(target):
        x = network.decoder.tokens.weight[token]
        x = torch.cat((x, feed)) if network.config.input_feeding else x
        for number in range(network.config.layers):
            states[number] = cell(network.decoder.layers.cells, number, 0, x, states[number])
            x = states[number][0]
        if network.decoder.align is not None:
            weights = look(network, x, memory, place)
            context = sum(weight * m for weight, m in zip(weights, memory, strict=True))
            x = torch.tanh(network.decoder.align.join.weight @ torch.cat((context, x)))
            rows.append(torch.stack(weights))
        feed = x
        head = network.heads["language"]
        messages.append(head.weight @ x + head.bias)
    return torch.stack(messages), torch.stack(rows) if rows else None


def test_logits_gradients_and_alignments_are_those_of_a_plain_loop(network, pair):
    source, target = pair
    weight = torch.randn(target.tokens, 20, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    results = []
    for way in ("ours", "plain"):
        network.zero_grad()
        if way == "ours":
            logits = network(source, target).logits
        else:
            pairs = zip(source.split(source.ids), target.split(target.ids), strict=True)
            logits = torch.cat([plain(network, one.tolist(), other.tolist())[0] for one, other in pairs])
        (logits.log_softmax(-1) * weight).sum().backward()
        results.append((logits.detach(), {name: p.grad.clone() for name, p in network.named_parameters()}))
    (ours, gradients), (expected, theirs) = results
    assert torch.allclose(ours, expected, atol=1e-10)
    for name, gradient in gradients.items():
        assert gradient.abs().max() > 0, name
        assert torch.allclose(gradient, theirs[name], atol=1e-10), name
    if network.config.score != "none":
        pairs = zip(source.split(source.ids), target.split(target.ids), strict=True)
        for ours, (one, other) in zip(network.alignment(source, target), pairs, strict=True):
            _, expected = plain(network, one.tolist(), other.tolist())
            assert torch.allclose(ours, expected, atol=1e-10)


def test_a_batch_is_its_sequences_one_at_a_time(network, pair):
    source, target = pair
    together = network(source, target)
    parts = zip(target.split(together.hidden), target.split(together.logits), strict=True)
    for row, (hidden, logits) in enumerate(parts):
        alone = network(source.select([row]), target.select([row]))
        assert torch.allclose(hidden, alone.hidden, atol=1e-12)
        assert torch.allclose(logits, alone.logits, atol=1e-12)
    assert together.memory.shape == (source.tokens, 8)


def test_chosen_positions_have_the_same_logits(network, pair):
    """To the rounding of float64: some matrix libraries sum in another order when there are fewer rows."""
    at = torch.tensor([0, 5, 12])
    assert torch.allclose(network(*pair, at=at).logits, network(*pair).logits[at], rtol=0, atol=1e-12)


def test_stepping_is_the_whole_pass(network, pair):
    """Two words at first, then one at a time, rows reordered and doubled on the way."""
    source, target = (part.select([0, 1, 3]) for part in pair)
    target = Ragged.of([[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]])
    whole = network(source, target).logits.view(3, 4, -1)
    cache = network.new_cache(source=source)
    first = Ragged.of(target.ids.view(3, 4)[:, :2].tolist())
    assert torch.allclose(network.step(first, cache), whole[:, 1], atol=1e-12)
    rows = torch.tensor([2, 0, 0])
    cache.select(rows)
    assert len(cache) == 3
    for place in (2, 3):
        step = Ragged.of(target.ids.view(3, 4)[rows, place].unsqueeze(1).tolist())
        assert torch.allclose(network.step(step, cache), whole[rows, place], atol=1e-12)
    assert cache.max_length == 4


def test_sequences_without_a_token(network, pair):
    source, target = Ragged.of([[1, 2], [], [3]]), Ragged.of([[4], [5, 6], []])
    output = network(source, target)
    assert torch.isfinite(output.logits).all()
    alone = network(Ragged.of([[1, 2]]), Ragged.of([[4]]))
    assert torch.allclose(output.logits[:1], alone.logits, atol=1e-12)
    nothing = network(Ragged.of([[1]]), Ragged.of([[]]))
    assert nothing.logits.shape == (0, 20)


def test_half_precision_outside_keeps_states_and_scores_exact(network, pair):
    network = network.float().train()
    plain = network(*pair).logits
    with torch.autocast("cpu", torch.bfloat16):
        output = network(*pair)
    assert output.memory.dtype == torch.float32
    assert output.logits.dtype == torch.bfloat16
    assert (output.logits.float() - plain).norm() < 3e-2 * plain.norm()
    output.logits.float().log_softmax(-1).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())
    if network.config.score != "none":
        with torch.autocast("cpu", torch.bfloat16):
            result = network.alignment(*pair)
        assert all(torch.allclose(rows.float().sum(1), torch.ones(len(rows)), atol=1e-5) for rows in result)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cell": "gro"}, 'cell "gro" is not known.*gru'),
        ({"score": "scaled"}, "not known"),
        ({"width": 7}, "even width"),
        ({"tied": True}, "tied embeddings"),
        ({"window": 2}, "needs attention"),
        ({"input_feeding": True}, "needs attention"),
    ],
)
def test_settings_that_do_not_go_together(settings, message):
    with pytest.raises(InputError, match=message):
        build(**settings)


def test_wrong_use_is_an_error(pair):
    network = build()
    with pytest.raises(InputError, match="second batch"):
        network(pair[0])
    with pytest.raises(InputError, match="4 source sequences but 1 target"):
        network(pair[0], pair[1].select([0]))
    with pytest.raises(InputError, match="source"):
        network.new_cache(sequences=2)
    with pytest.raises(InputError, match='no head "token"'):
        RecurrentNetwork(network.config, {"token": 3})


# Alignments of a target with its source.


def test_alignments_are_shares_of_the_source(network, pair):
    if network.config.score == "none":
        with pytest.raises(InputError, match="no attention"):
            network.alignment(*pair)
        return
    for weights, sources, targets in zip(network.alignment(*pair), SOURCE, TARGET, strict=True):
        assert weights.shape == (targets, sources)
        assert torch.allclose(weights.sum(1), torch.ones(targets, dtype=torch.float64))


def test_a_local_window_sees_its_width():
    network = build(score="dot", window=1)
    (weights,) = network.alignment(Ragged.of([[1, 2, 3, 4, 5]]), Ragged.of([[1, 2, 3, 4, 5, 6, 7]]))
    recorded = [(row > 0).nonzero().flatten().tolist() for row in weights]
    assert recorded == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4], [3, 4], [3, 4]]


# Sequences laid out step by step.


def test_steps_hold_every_token_once(tokens):
    batch = tokens((2, 0, 4, 1, 4))
    steps = Unrolled.of(batch)
    assert steps.rows.tolist() == [2, 4, 0, 3]
    assert steps.sizes == (4, 3, 2, 2)
    assert steps.order.tolist() == [2, 7, 0, 6, 3, 8, 1, 4, 9, 5, 10]
    assert steps.order[steps.back].tolist() == list(range(11))
