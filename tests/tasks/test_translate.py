"""Translation against transformers and sacreBLEU, and what attention is for."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from tests.training.helpers import stop_at

import regard.predict
from regard import samples
from regard.checkpoint.families import family_for
from regard.checkpoint.folder import read_folder
from regard.checkpoint.reading import preprocessing_of
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import export_tensors, write_folder
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import TranslateRecord
from regard.errors import DataError, InputError
from regard.model.transformer import Transformer
from regard.predict.translation import Alignment
from regard.ragged import Ragged
from regard.tasks.greedy import greedy_decode
from regard.tasks.translate import Translate, TranslationAnswer
from regard.text.tokenizer import Tokenizer
from regard.training.engine.loop import Stopped
from regard.training.from_scratch.preset_model import with_special_token_ids
from regard.training.from_scratch.vocabulary import VocabularySpec
from regard.training.train import train

SHAPE: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
}
SHAPE |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
T5: dict[str, Any] = {
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "pad_token_id": 0,
    "eos_token_id": 3,
}
T5_GATED = {"decoder_start_token_id": 0, "tie_word_embeddings": False}
IDS: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 3, "bos_token_id": 2}
MODELS = {
    "marian": lambda size: transformers.MarianMTModel(
        transformers.MarianConfig(vocab_size=size, decoder_vocab_size=size, decoder_start_token_id=0, **SHAPE, **IDS)
    ),
    "bart": lambda size: transformers.BartForConditionalGeneration(
        transformers.BartConfig(vocab_size=size, decoder_start_token_id=3, forced_eos_token_id=3, **SHAPE, **IDS)
    ),
    "t5": lambda size: transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=size, **{**T5, "decoder_start_token_id": 0})
    ),
    "t5 gated": lambda size: transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=size, feed_forward_proj="gated-gelu", **{**T5, **T5_GATED})
    ),
}


@pytest.fixture(params=MODELS)
def theirs(request, small, tmp_path):
    torch.manual_seed(0)
    model = MODELS[request.param](small.tokenizer.size).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(0, 0.2) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
    model.generation_config.max_length = None
    model.save_pretrained(tmp_path)
    small.tokenizer.save(tmp_path)
    return model


def padded(batch, values, filling):
    return torch.nn.utils.rnn.pad_sequence(batch.split(values), batch_first=True, padding_value=filling)


def model_inputs(inputs):
    tokens = inputs.tokens
    return {
        "input_ids": padded(tokens, tokens.ids, 0),
        "attention_mask": padded(tokens, torch.ones_like(tokens.ids), 0),
    }


def test_loss_and_gradients_are_those_of_transformers(theirs, translations, tmp_path):
    checkpoint = read_folder(tmp_path)
    for module in (*theirs.modules(), *checkpoint.network.modules()):
        assert not module.training
    preprocessing, task = preprocessing_of(checkpoint, Tokenizer.load(tmp_path)), Translate.from_records(translations)
    inputs = task.examples(translations, preprocessing, labeled=True).take(range(len(translations)))
    labels = padded(inputs.target, inputs["word"], -100)
    expected = theirs(**model_inputs(inputs), labels=labels).loss
    expected.backward()
    loss = task.loss(checkpoint.network(inputs.tokens, inputs.target), inputs)
    ours = loss.sum / loss.count
    ours.backward()
    assert ours.item() == pytest.approx(expected.item(), abs=1e-5)
    with torch.no_grad():
        for parameter in checkpoint.network.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    gradients = export_tensors(checkpoint, family_for(checkpoint.family, checkpoint.config))
    for name, parameter in theirs.named_parameters():
        if name == "model.shared.weight":  # Marian and BART never learn what is read as padding, the start token too
            gradients[name][0] = parameter.grad[0]
        if parameter.grad is not None:
            assert torch.allclose(gradients[name], parameter.grad, atol=1e-5), name


def test_what_is_written_is_what_transformers_writes(theirs, translations, tmp_path):
    checkpoint = read_folder(tmp_path)
    preprocessing, task = preprocessing_of(checkpoint, Tokenizer.load(tmp_path)), Translate()
    inputs = task.examples(translations, preprocessing, labeled=False).take(range(len(translations)))
    assert inputs.target.ids.tolist() == [theirs.config.decoder_start_token_id] * 4
    theirs.generation_config.forced_eos_token_id = None
    made = theirs.generate(**model_inputs(inputs), max_new_tokens=12, num_beams=1, do_sample=False)[:, 1:]
    start, end = inputs["start"].unique().item(), inputs["end"].unique().item()
    assert isinstance(checkpoint.network, Transformer)
    result = greedy_decode(checkpoint.network, inputs.tokens, start=start, end=end, max_new_tokens=[12] * 4)
    for ours, row in zip(result, made.tolist(), strict=True):
        expected = row[: row.index(3)] if 3 in row else row
        assert ours.ids == tuple(expected)
        assert ours.ended == (3 in row)


def test_smoothing_is_that_of_torch(small, translations):
    task = Translate.from_records(translations, label_smoothing=0.1)
    network = small.spread(task)
    inputs = task.examples(translations, small.preprocessing(), labeled=True).take(range(4))
    logits = network(inputs.tokens, inputs.target).logits
    loss = task.loss(network(inputs.tokens, inputs.target), inputs)
    expected = torch.nn.functional.cross_entropy(logits, inputs["word"], label_smoothing=0.1)
    assert (loss.sum / loss.count).item() == pytest.approx(expected.item(), rel=1e-6)


def reversals(rows, *, seed=0):
    """Words of a made-up language, translated by reading them backwards."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choices("abcdefgh", k=draw.randint(4, 7))) for _ in range(rows)]
    return [TranslateRecord(text, " ".join(reversed(text.split()))) for text in texts]


def learned(task, name, rows, small, *, steps=100, seed=0):
    """The loss of the last steps of a short training."""
    config = {"vocabulary": small.tokenizer.size, "dropout": 0.0}
    network = from_preset(name, seed=seed, **config).network.train()
    examples = task.examples(rows, Preprocessing(small.tokenizer, network.config), labeled=True)
    optimizer, losses = torch.optim.Adam(network.parameters(), lr=2e-2), []
    for step in range(steps):
        batch = [(step * 32 + row) % len(examples) for row in range(32)]
        loss = small.run(task, network, examples.take(batch))
        (loss.sum / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append((loss.sum / loss.count).item())
    return sum(losses[-20:]) / 20, network.eval()


def test_attention_finds_what_the_bottleneck_forgets(small):
    task, rows = Translate(), reversals(256)
    without, _ = learned(task, "tiny-gru", rows, small)
    result, network = learned(task, "tiny-gru-additive", rows, small)
    assert result < 0.75 * without
    test = reversals(20, seed=1)
    preprocessing = Preprocessing(small.tokenizer, network.config)
    inputs = task.examples(test, preprocessing, labeled=True).take([0])
    (weights,) = network.alignment(inputs.tokens, inputs.target)
    assert weights.shape == (len(inputs.target.ids), len(inputs.tokens.ids))


@pytest.mark.parametrize("preset", ["tiny-transformer", "tiny-gru-additive", "tiny-lstm-feeding"])
def test_the_same_command_trains_them_all(preset, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "regard.training.from_scratch.vocabulary.vocabulary_of", lambda name: VocabularySpec("unigram", 60)
    )
    for side in ("source", "target"):
        texts = [getattr(row, side) for row in reversals(60)]
        (tmp_path / f"rows.{side[:2]}").write_text("".join(text + "\n" for text in texts))
    where = f"{tmp_path / 'rows.so'},{tmp_path / 'rows.ta'}"
    result = train(
        where,
        out=tmp_path / "out",
        preset=preset,
        steps=12,
        eval_every=6,
        batch_size=16,
        label_smoothing=0.1,
        device="cpu",
    )
    assert result.task == "translate"
    assert list(result.scores) == ["bleu", "chrf", "bleu_lowercase"]
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["signatures"]["bleu"].startswith("nrefs:1|case:mixed")
    assert run["task_settings"] == {"label_smoothing": 0.1}
    checkpoint, words = read_folder(tmp_path / "out"), Tokenizer.load(tmp_path / "out")
    content = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (content["decoder_start_token_id"], content["eos_token_id"], content["pad_token_id"]) == (
        words.pad,
        words.eos,
        0,
    )
    preprocessing = preprocessing_of(checkpoint, words)
    assert preprocessing.start == words.pad
    card = (tmp_path / "out" / "README.md").read_text()
    check_translating(tmp_path / "out")
    if preset == "tiny-transformer":
        other = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
        inputs = Translate().examples(reversals(2), preprocessing, labeled=True).take([0, 1])
        ours = checkpoint.network(inputs.tokens, inputs.target).logits
        labels = padded(inputs.target, inputs["word"], -100)
        logits = other(**model_inputs(inputs), labels=labels).logits
        assert torch.allclose(ours, logits[labels != -100], atol=1e-4)
        assert "from_pretrained" in card
    else:
        assert "transformers cannot open" in card


def test_rdrop_resumes_bit_for_bit(tmp_path):
    rows = [{"source": row.source, "target": row.target} for row in reversals(60)]
    settings: dict[str, Any] = {
        "task": "translate",
        "preset": "tiny-transformer",
        "steps": 12,
        "eval_every": 6,
        "log_every": 1,
        "batch_size": 16,
        "rdrop": 1.0,
        "device": "cpu",
    }
    train(rows, out=tmp_path / "whole", **settings)
    with pytest.raises(Stopped):
        train(rows, out=tmp_path / "run", **settings, progress=stop_at(9))
    train(rows, out=tmp_path / "run", **settings, resume=True)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "run")]
    assert weights[0] == weights[1]
    model = regard.load(tmp_path / "whole", device="cpu")
    assert model.translate(["a b c"]) == model.translate(["a b c"])


def check_translating(folder):
    """Greedy by the task, greedy and beams by `generate`, n-best, alignments, the command line, evaluation."""
    model = regard.load(folder, device="cpu")
    texts = ["a b c", "h g f e d"]
    by_task = model.predict(texts)[0]
    assert isinstance(by_task, TranslationAnswer)
    assert by_task.translation.startswith(model.translate(texts[:1], max_tokens=8)[0])
    best = model.translations(texts, beams=3, best=3, alignment=True)
    for result in best:
        assert len(result) == 3
        assert result == sorted(result, key=lambda one: -one.score)
        for one in result:
            (recorded,) = one.alignments
            weights = torch.tensor(recorded.weights)
            assert weights.shape == (len(recorded.target), len(recorded.source))
            assert torch.allclose(weights.sum(1), torch.ones(len(recorded.target)), atol=1e-5)
    alone = model.translate(texts[:1], beams=3)
    assert alone == [best[0][0].text]


def test_a_long_text_is_translated_a_few_sentences_at_a_time(small, translations):
    task = Translate()
    network = small.spread(task)
    text = "Good morning. A man sleeps. The dog is awake. Who went to Paris? The fox jumps over the lazy dog."
    long = TranslateRecord(text, "")
    examples = task.examples([long], small.preprocessing(window=14), labeled=False)
    assert examples.max_length <= 14
    parts = [examples.take([row]).tokens.ids for row in range(len(examples))]
    whole = [small.tokenizer.decode(part.tolist()) for part in parts]
    assert " ".join(whole) == small.tokenizer.decode(small.tokenizer.encode(text).ids)
    (answer,) = small.answers(task, network, [long], window=14)
    assert answer.windows == len(examples) > 1
    pair = TranslateRecord(text, "the dog")
    with pytest.warns(UserWarning, match="1 of 2 pairs are longer than the 14 tokens"):
        learn = task.examples([translations[0], pair], small.preprocessing(window=14), labeled=True)
    loss = small.run(task, network, learn.take(range(1, len(learn))))
    assert (loss.sum.item(), loss.count.item()) == (0.0, 0.0)


def test_files_of_unequal_length_are_refused(tmp_path):
    lines = ["a house by the sea", "he", "the man reads a book", "she sleeps", "yes, of course", "no", "it rains today"]
    (tmp_path / "a.en").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "a.de").write_text("".join(line + "\n" for line in lines if line != "no"))
    message = (
        r"a\.de: has 6 lines, but .*a\.en has 7; expected as many lines in both. Line 6 is the first with very diff"
    )
    with pytest.raises(DataError, match=message):
        train(f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}", out=tmp_path / "out", preset="tiny-gru")


@pytest.mark.parametrize("beams", [1, 3])
def test_a_translation_does_not_depend_on_its_batch(small, beams):
    """How long it may get is its own source's to say, not that of the longest in its batch."""
    checkpoint = from_preset("tiny-gru-additive", vocabulary=small.tokenizer.size)
    with torch.no_grad():
        checkpoint.network.get_parameter("heads.language.bias")[small.tokenizer.sep] = -50.0  # it never stops by itself
    model = regard.predict.Model(with_special_token_ids(checkpoint, small.tokenizer), small.tokenizer)
    texts = ["a man", "Good morning; a man sleeps while another (his brother) is awake: how odd"]
    together = model.translate(texts, beams=beams)
    assert together == [model.translate([text], beams=beams)[0] for text in texts]
    assert len(together[0]) < len(together[1])


def apart(small):
    """A Marian of transformers whose languages have a vocabulary each, in a folder with both."""
    torch.manual_seed(0)
    size: dict[str, Any] = {"vocab_size": small.tokenizer.size, "decoder_vocab_size": 90}
    size["share_encoder_decoder_embeddings"] = False
    model = transformers.MarianMTModel(transformers.MarianConfig(decoder_start_token_id=0, **size, **SHAPE, **IDS))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(0, 0.2)
        model.final_logits_bias.normal_()
    return model.eval()


@pytest.mark.parametrize("tied", [True, False])
def test_vocabularies_apart_are_read_as_transformers_reads_them(small, tmp_path, tied):
    theirs = apart(small)
    theirs.config.tie_word_embeddings = tied
    if not tied:
        theirs.lm_head.weight = torch.nn.Parameter(torch.randn_like(theirs.lm_head.weight))
    theirs.save_pretrained(tmp_path / "theirs")
    checkpoint = read_folder(tmp_path / "theirs")
    assert (checkpoint.config.vocabulary, checkpoint.config.target_vocabulary) == (small.tokenizer.size, 90)
    source, target = [5, 6, 7, 3], [0, 80, 89, 4]
    ids = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
    ours = checkpoint.network(Ragged.of([source]), Ragged.of([target])).logits
    assert torch.allclose(ours, theirs(**ids).logits[0], atol=1e-5)
    write_folder(tmp_path / "ours", checkpoint)
    again = transformers.MarianMTModel.from_pretrained(tmp_path / "ours").eval()
    assert torch.allclose(again(**ids).logits, theirs(**ids).logits, atol=1e-6)
    assert again.config.share_encoder_decoder_embeddings is False


@pytest.mark.parametrize("preset", ["tiny-transformer", "tiny-gru-additive"])
def test_each_language_may_have_its_own_vocabulary(preset, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "regard.training.from_scratch.vocabulary.vocabulary_of", lambda name: VocabularySpec("unigram", 60)
    )
    rows = [f"{row.source}\t{row.target.upper()} Ñ\n" for row in reversals(60)]
    (tmp_path / "rows.tsv").write_text("source\ttarget\n" + "".join(rows))
    out = tmp_path / "out"
    options = {"preset": preset, "steps": 4, "batch_size": 16, "vocabularies": "separate", "device": "cpu"}
    train(tmp_path / "rows.tsv", out=out, task="translate", **options)
    words = Tokenizer.load(out)
    assert words.target is not None
    assert {"A", "Ñ"} <= set("".join(words.target.backend.get_vocab())) - set("".join(words.backend.get_vocab()))
    assert "a" not in "".join(token for token in words.target.backend.get_vocab() if token[0] != "<")
    checkpoint = read_folder(out)
    assert (checkpoint.config.vocabulary, checkpoint.config.output_vocabulary) == (words.size, words.target.size)
    check_translating(out)
    model = regard.load(out, device="cpu")
    (result,) = model.translations(["a b c"], alignment=True)[0]
    assert set(result.alignments[0].source) <= set(words.backend.get_vocab())
    assert set(result.alignments[0].target) <= set(words.target.backend.get_vocab())
    assert result.text == result.text.upper()
    assert regard.evaluate(model, tmp_path / "rows.tsv").rows == 60
    model.save(tmp_path / "copy")
    assert regard.load(tmp_path / "copy", device="cpu").translate(["a b c"]) == [result.text]
    content = json.loads((out / "config.json").read_text())
    assert content["eos_token_id"] == words.target.eos
    assert regard.predict.info(out).target_vocabulary == words.target.size
    if preset == "tiny-transformer":
        other = transformers.AutoModelForSeq2SeqLM.from_pretrained(out).eval()
        theirs = transformers.AutoTokenizer.from_pretrained(out / "target_tokenizer")
        made = other.generate(torch.tensor([words.encode("a b c").ids]), max_new_tokens=12, num_beams=1)
        assert theirs.decode(made[0], skip_special_tokens=True).strip() == model.translate(["a b c"], max_tokens=12)[0]


def test_vocabularies_that_cannot_be_apart(small, tmp_path):
    (tmp_path / "rows.tsv").write_text("source\ttarget\na b\tb a\nc d\td c\n")
    options = {
        "task": "translate",
        "out": tmp_path / "out",
        "vocabularies": "separate",
        "dev_fraction": 0.0,
        "device": "cpu",
    }
    with pytest.raises(InputError, match="folders of the family t5 hold one vocabulary"):
        train(tmp_path / "rows.tsv", preset="tiny-t5", **options)
    write_folder(
        tmp_path / "model",
        from_preset("tiny-marian", vocabulary=small.tokenizer.size),
        write_extra_files=small.tokenizer.save,
    )
    with pytest.raises(InputError, match="has its vocabulary already; leave vocabularies out"):
        train(tmp_path / "rows.tsv", start=tmp_path / "model", **options)
    with pytest.raises(InputError, match="the tokenizer has none for the other language"):
        train(tmp_path / "rows.tsv", preset="tiny-gru", tokenizer=tmp_path / "model", **options)
    with pytest.raises(InputError, match="vocabularies was given, but the task is classify"):
        train(samples.path("messages"), preset="tiny-bert", **(options | {"task": "classify"}))


def test_the_prefix_is_from_the_folder_or_the_setting(small, tmp_path):
    """T5 names its translations in task_specific_params; a training keeps what it was told as its own."""
    german = "translate English to German: "
    checkpoint = with_special_token_ids(from_preset("tiny-t5", vocabulary=small.tokenizer.size), small.tokenizer)
    ways = {"translation_en_to_de": {"prefix": german}, "summarization": {"prefix": "summarize: "}}
    one = replace(checkpoint, hf_config={**checkpoint.hf_config, "task_specific_params": ways})
    assert preprocessing_of(one, small.tokenizer).prefix == german
    assert preprocessing_of(one, small.tokenizer, prefix="a: ").prefix == "a: "
    several = {**ways, "translation_en_to_fr": {"prefix": "translate English to French: "}}
    two = replace(checkpoint, hf_config={**checkpoint.hf_config, "task_specific_params": several})
    with pytest.warns(UserWarning, match='2 translation tasks, each with a prefix: "translate English to German'):
        assert preprocessing_of(two, small.tokenizer).prefix == german
    write_folder(tmp_path / "t5", one, write_extra_files=small.tokenizer.save)
    (tmp_path / "rows.tsv").write_text("source\ttarget\nthe dog\ta fox\nthe fox\ta dog\n")
    options: dict[str, Any] = {
        "task": "translate",
        "start": tmp_path / "t5",
        "steps": 1,
        "dev_fraction": 0.0,
        "device": "cpu",
    }
    for prefix, stored_prefix in (("dog: ", "dog: "), ("", ""), (None, german)):
        chosen: dict[str, Any] = {} if prefix is None else {"prefix": prefix}
        train(tmp_path / "rows.tsv", out=tmp_path / "out", overwrite=True, **options, **chosen)
        assert regard.load(tmp_path / "out", device="cpu").preprocessing().prefix == stored_prefix
    model = regard.load(tmp_path / "t5", device="cpu")
    recorded = model.translations(["the fox"], prefix="the dog ", alignment=True)[0][0].alignments[0].source
    assert recorded == model.translations(["the dog the fox"], prefix="", alignment=True)[0][0].alignments[0].source


def test_alignments_by_word():
    pieces = Alignment(("▁go", "od", "▁day", "</s>"), ("▁bu", "en", "▁día", "</s>"), ((0.5, 0.25, 0.25, 0.0),) * 4)
    words = pieces.by_word()
    assert (words.source, words.target) == (("good", "day", "</s>"), ("buen", "día", "</s>"))
    assert words.weights == ((0.75, 0.25, 0.0),) * 3
    plain = Alignment(("[CLS]", "un", "##do", "it"), ("a",), ((0.1, 0.2, 0.3, 0.4),)).by_word()
    assert (plain.source, plain.weights) == (("[CLS]", "undo", "it"), ((0.1, 0.5, 0.4),))
    letters = Alignment(("a", "b"), ("c",), ((0.5, 0.5),))
    assert letters.by_word() == letters
