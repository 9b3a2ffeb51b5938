from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.data.batching.examples import Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE, MaskSettings, Unit, max_masked
from regard.data.records import DocumentRecord
from regard.metrics.language_meters import MaskedCounts, MaskedMeter
from regard.ragged import Ragged
from regard.tasks.language.masked import Masked, MaskedAnswer
from regard.text.learn import train_tokenizer_from_texts

V = 100
MASKS = MaskSettings(4, V, (0, 1, 2, 3, 4))
TEXT = "the old man went to the market and the market was closed so the old man went home again"


def batch(*lengths: int, seed: int = 0, pairs: bool = True) -> Inputs:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, V, (sum(lengths),), generator=generator)
    labels = {"next": torch.randint(2, (len(lengths),), generator=generator)} if pairs else {}
    tokens = Ragged.from_flat(ids, lengths, segments=torch.zeros_like(ids))
    by_token = {"learn": torch.zeros(len(ids), dtype=torch.int8), "begins": (ids % 2).to(torch.int8)}
    return Inputs(tokens, labels, by_token, rows=len(lengths))


def test_a_fixed_shape_hides_as_many_words_and_never_those_that_fill_it() -> None:
    task, plain = Masked(MASKS), batch(200, 150, 90)
    steady = plain.fixed(tokens=1024, sequences=8, max_length=256)
    torch.manual_seed(0)
    counts: dict[str, list[int]] = {"plain": [], "steady": []}
    for _ in range(200):
        for name, inputs in (("plain", plain), ("steady", steady)):
            result = task.prepare(inputs)
            assert result.at is not None
            retained = result["words"] != IGNORE
            assert (result.at[retained] < 440).all()
            assert torch.equal(result["words"][retained], inputs.tokens.ids[result.at[retained]])
            counts[name].append(int(retained.sum()))
    assert len(result["words"]) == max_masked(1024, 0.15)
    mean, other = np.mean(counts["plain"]), np.mean(counts["steady"])
    error = (440 * 0.15 * 0.85 / 200) ** 0.5
    assert abs(mean - 440 * 0.15) < 4 * error
    assert abs(other - 440 * 0.15) < 4 * error


@pytest.mark.parametrize(("follows", "unit"), [(False, "token"), (True, "token"), (False, "word")])
def test_a_step_in_fixed_shapes_compiles_whole(follows: bool, unit: Unit) -> None:
    """Drawing, network and loss in one graph that serves other batches too: no size depends on luck."""
    task = Masked(replace(MASKS, unit=unit), follows=follows)
    network = from_preset("tiny-bert", heads=task.heads).network.train()

    def loss(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        prepared = task.prepare(inputs)
        result = task.loss(network(prepared.tokens, at=prepared.at), prepared)
        return result.sum, result.count

    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        run = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=False)
        for lengths in ((20, 9, 31), (50, 3, 4, 5)):
            sum_, count = run(batch(*lengths).fixed(tokens=128, sequences=8, max_length=64))
            sum_.backward()
            assert 0 < int(count) <= sum(lengths)
            assert 3 < float(sum_.detach() / count) < 7


def test_two_losses_are_added_as_means() -> None:
    task, words = Masked(MASKS, follows=True), Masked(MASKS)
    network = from_preset("tiny-bert", heads=task.heads).network
    inputs = task.prepare(batch(30, 40, 20))
    output = network(inputs.tokens, at=inputs.at)
    both, one = task.loss(output, inputs), words.loss(output, inputs)
    assert output.next_sentence is not None
    next_ = torch.nn.functional.cross_entropy(output.next_sentence, inputs["next"])
    torch.testing.assert_close(both.sum / both.count, one.sum / one.count + next_)


def test_records_are_cut_into_windows_and_their_guesses_added() -> None:
    words = train_tokenizer_from_texts([TEXT] * 20, size=60)
    task = Masked.of(words, vocabulary=V, follows=True)
    checkpoint = from_preset("tiny-bert", heads=task.heads)
    preprocessing = Preprocessing(words, checkpoint.config, window=10)
    examples = task.examples([DocumentRecord(TEXT), DocumentRecord("the market")], preprocessing, labeled=True)
    assert examples.max_length == 10
    inside = int((examples.owners == 0).sum())
    assert inside == -(-len(words.encode(TEXT, special=False)) // 8)
    answer = task.answer(DocumentRecord(TEXT), [MaskedCounts(1, 2, 3.0, True), MaskedCounts(0, 1, 1.5, True)])
    assert answer == MaskedAnswer(2, right=1, count=3, nll=4.5, follows=True)
    meter = task.meter()
    task.update(meter, answer, DocumentRecord(TEXT))
    scores = {name: score.value for name, score in meter.scores().items()}
    assert scores == pytest.approx(
        {"masked_accuracy": 1 / 3, "perplexity": np.exp(1.5), "nll": 1.5, "next_accuracy": 1.0}
    )
    assert (meter.main, meter.higher_is_better, meter.rows) == ("masked_accuracy", True, 1)


def test_a_folder_keeps_the_task() -> None:
    task = Masked(MaskSettings(4, V, (0, 4), rate=0.3, unit="span"), follows=True)
    assert Masked.from_settings(task.settings()) == task
    assert "next_accuracy" not in _scores(MaskedCounts(1, 2, 0.5))


def _scores(row: MaskedCounts) -> dict[str, object]:
    meter = MaskedMeter()
    meter.add(row)
    return dict(meter.scores())


@pytest.mark.parametrize("steady", [False, True])
def test_whole_words_are_hidden_or_none_of_their_tokens(steady: bool) -> None:
    words = train_tokenizer_from_texts([TEXT] * 20, size=40)
    task = Masked.of(words, rate=0.3, unit="word")
    checkpoint = from_preset("tiny-bert", vocabulary=words.size, heads=task.heads)
    records = [DocumentRecord(TEXT), DocumentRecord("the market was closed again")]
    inputs = task.examples(records, Preprocessing(words, checkpoint.config), labeled=True).take([0, 1])
    plain = len(inputs.tokens.ids)
    inputs = inputs.fixed(tokens=256, sequences=4, max_length=128) if steady else inputs
    words_of = [
        (row, word) if word is not None else None
        for row, record in enumerate(records)
        for word in words.encode(record.text).word_ids
    ]
    places = {word: [at for at, other in enumerate(words_of) if other == word] for word in words_of if word is not None}
    assert len(words_of) == plain
    assert max(map(len, places.values())) > 2
    torch.manual_seed(0)
    hidden = 0
    for _ in range(100):
        result = task.prepare(inputs)
        assert result.at is not None
        chosen = set(result.at[result["words"] != IGNORE].tolist())
        hidden += len(chosen)
        for rows in places.values():
            assert len(chosen & set(rows)) in (0, len(rows))
        assert chosen <= {at for rows in places.values() for at in rows}
    tokens = sum(map(len, places.values()))
    assert 0.24 * tokens < hidden / 100 < 0.36 * tokens
    loss = task.loss(checkpoint.network(result.tokens, at=result.at), result)
    assert loss.count.item() == len(chosen)
