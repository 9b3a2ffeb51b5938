"""Small networks for tasks: drawn here, or taken from transformers with its loss and gradients."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers

from regard.checkpoint.families import family_for, preset
from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import export_tensors
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import (
    AnswerRecord,
    ClassifyRecord,
    DocumentRecord,
    PairRecord,
    TagRecord,
    TranslateRecord,
)
from regard.data.records import AnswerSpan as Gold
from regard.tasks import task_class
from regard.tasks.inference import answer_records, network_runner, score_records
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer
from regard.training.initial_model import set_dropout
from regard.training.load_data import texts_of
from regard.training.train import train

SENTENCES = (
    "Anna Berg went to Paris on Monday.",
    "the quick brown fox jumps over the lazy dog, vexing 1234567890 wizards!",
    "Mr Jones of Acme Ltd wrote to Zoë in New York.",
    "Who went to Paris? When did it rain? What does the fox do?",
    "Good morning; a man sleeps while another (his brother) is awake: how odd - isn't it?",
)
LIKE_BERT: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 128,
}
CONFIGS = {
    "bert": lambda size: transformers.BertConfig(vocab_size=size, **LIKE_BERT),
    "roberta": lambda size: transformers.RobertaConfig(vocab_size=size, type_vocab_size=1, **LIKE_BERT),
    "distilbert": lambda size: transformers.DistilBertConfig(
        vocab_size=size, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=128
    ),
    "modernbert": lambda size: transformers.ModernBertConfig(
        vocab_size=size,
        **LIKE_BERT,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        local_attention=8,
    ),
}
FAMILIES = tuple(CONFIGS)
NETWORKS = {"language": "tiny-gpt2", "sides": "tiny-elmo"}  # by the head they have


class Small:
    """A tokenizer and networks that fit it."""

    def __init__(self):
        self.tokenizer = train_tokenizer_from_texts(SENTENCES, kind="wordpiece", size=120, lowercase=False)

    def preprocessing(self, **more):
        return Preprocessing(self.tokenizer, preset("tiny-bert").config, **more)

    def network(self, task, *, seed=0):
        name = next((NETWORKS[head] for head in task.heads if head in NETWORKS), "tiny-bert")
        name = "tiny-transformer" if task.network_kind == "encoder-decoder" else name
        checkpoint = from_preset(name, heads=task.heads, seed=seed, vocabulary=self.tokenizer.size)
        set_dropout(checkpoint.network, 0.0)
        return checkpoint.network.eval()

    def spread(self, task, *, seed=0):
        """A network that has opinions."""
        network = self.network(task, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
        return network

    def run(self, task, network, inputs):
        inputs = task.prepare(inputs)
        return task.loss(network(inputs.tokens, inputs.target, at=inputs.at), inputs)

    def answers(self, task, network, records, *, labeled=False, **more):
        preprocessing = self.preprocessing(**more)
        result = answer_records(
            task, network_runner(network, task), records, preprocessing, device=torch.device("cpu"), labeled=labeled
        )
        return [answer for _, answer in result]

    def score(self, task, network, records, **more):
        return score_records(
            task, network_runner(network, task), records, self.preprocessing(**more), device=torch.device("cpu")
        )

    def golden(self, task, records, *, rows=3, steps=20, network=None):
        """The losses of twenty steps, a few rows each, of a new network or this one."""
        examples = task.examples(records, self.preprocessing(), labeled=True)
        network = self.network(task).train() if network is None else network
        optimizer = torch.optim.SGD(network.parameters(), lr=0.2)  # no division that would make noise large
        results = []
        for step in range(steps):
            batch = [(step * rows + row) % len(examples) for row in range(rows)]
            loss = self.run(task, network, examples.take(batch))
            (loss.sum / loss.count).backward()
            optimizer.step()
            optimizer.zero_grad()
            results.append(round((loss.sum / loss.count).item(), 5))
        return results

    def learned(self, records, task, folder, *, size=600, **settings):
        """Train on all rows, read the folder back, and score the same rows with what it holds."""
        train_tokenizer_from_texts(texts_of(records), kind="wordpiece", size=size, lowercase=False).save(
            _made(folder / "words")
        )
        write_rows(folder / "rows.jsonl", records)
        settings = {"device": "cpu", "dev_fraction": 0.0, "dropout": 0.0, "preset": "tiny-bert", "lr": 3e-3, **settings}
        train(folder / "rows.jsonl", out=folder / "out", tokenizer=folder / "words", task=task, **settings)
        stored = json.loads((folder / "out" / "run.json").read_text())
        restored = task_class(stored["task"]).from_settings(stored["task_settings"])
        checkpoint, words = read_folder(folder / "out"), Tokenizer.load(folder / "out")
        result = score_records(
            restored,
            network_runner(checkpoint.network, restored),
            records,
            Preprocessing(words, checkpoint.config),
            device=torch.device("cpu"),
        )
        return restored, result

    def both(self, task, records, family, kind, folder, theirs):
        """The same batch here and in transformers: losses, and gradients under their names.

        `theirs` is given their model, the padded batch and what is to be learned of it, and returns their loss.
        """
        model = _model(family, kind, self.tokenizer.size, task, folder)
        checkpoint = read_folder(folder)
        preprocessing = Preprocessing(self.tokenizer, checkpoint.config)
        inputs = task.examples(records, preprocessing, labeled=True).take(range(len(records)))
        expected = theirs(model, _padded(inputs, model.config), inputs)
        expected.backward()
        loss = self.run(task, checkpoint.network, inputs)
        ours = loss.sum / loss.count
        ours.backward()
        with torch.no_grad():
            for parameter in checkpoint.network.parameters():
                parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        gradients = export_tensors(checkpoint, family_for(checkpoint.family, checkpoint.config))
        return ours.item(), expected.item(), gradients, dict(model.named_parameters())

    def agree(self, *options):
        ours, expected, gradients, parameters = self.both(*options)
        assert ours == pytest.approx(expected, abs=1e-5)
        for name, parameter in parameters.items():
            targets = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            assert torch.allclose(gradients[name], targets, atol=1e-5), name


def _model(family, kind, size, task, folder):
    config = CONFIGS[family](size)
    for key in list(vars(config)):
        if "drop" in key and isinstance(getattr(config, key), float):
            setattr(config, key, 0.0)
    config.num_labels = next(iter(task.heads.values()))
    if task.problem_type:
        config.problem_type = task.problem_type
    torch.manual_seed(0)
    model = getattr(transformers, type(config).__name__.removesuffix("Config") + kind)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    return model


def _made(folder):
    folder.mkdir()
    return folder


def write_rows(path, records):
    """As JSONL that the readers read."""

    def row(record):
        match record:
            case ClassifyRecord():
                return {"text": record.text, "label": record.label}
            case PairRecord():
                return {"sentence1": record.first, "sentence2": record.second, "label": record.label}
            case TagRecord():
                return {"tokens": record.tokens, "tags": record.tags}
            case AnswerRecord():
                answers = [{"text": text, "answer_start": start} for text, start in record.answers]
                return {"id": record.id, "context": record.context, "question": record.question, "answers": answers}
            case TranslateRecord():
                return {"translation": {"en": record.source, "xx": record.target}}

    path.write_text("".join(json.dumps(row(record)) + "\n" for record in records))


def _padded(inputs, config):
    """The batch as transformers wants it, what is to be learned of each token padded too."""

    def pad(values, filling):
        return torch.nn.utils.rnn.pad_sequence(inputs.tokens.split(values), batch_first=True, padding_value=filling)

    results = {
        "input_ids": pad(inputs.tokens.ids, config.pad_token_id),
        "attention_mask": pad(torch.ones_like(inputs.tokens.ids), 0),
    }
    if inputs.tokens.segments is not None:
        results["token_type_ids"] = pad(inputs.tokens.segments, 0)
    if "label" in inputs.by_token:
        results["labels"] = pad(inputs["label"], -100)
    return results


@pytest.fixture(scope="session")
def small():
    return Small()


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="session")
def texts():
    """A few rows of one label each, two each of three labels."""
    rows = [("good morning", "b"), ("the lazy dog", "a"), ("wizards!", "c"), ("how odd isn't it?", "a")]
    rows += [("a man sleeps while another is awake", "b"), ("Paris on Monday", "c"), ("", "b")]
    return [ClassifyRecord(text, label) for text, label in rows]


@pytest.fixture(scope="session")
def pairs():
    rows = [
        ("a man sleeps", "a man is awake", "no"),
        ("the fox jumps over the dog", "it jumps", "yes"),
        ("Good morning", "the dog", "maybe"),
        ("Anna went to Paris on Monday", "Anna went to Paris", "yes"),
        ("it", "is awake while another sleeps", "no"),
    ]
    return [PairRecord(*row) for row in rows]


@pytest.fixture(scope="session")
def tagged():
    rows = [
        ("Anna Berg went to Paris on Monday .", "B-PER I-PER O O B-LOC O O O"),
        ("the quick fox jumps", "O O O O"),
        ("Mr Jones wrote to Zoë in New York", "B-PER I-PER O O B-PER O B-LOC I-LOC"),
        ("Paris New York", "B-LOC B-LOC I-LOC"),
    ]
    return [TagRecord.from_tokens(words.split(), tags.split()) for words, tags in rows]


@pytest.fixture(scope="session")
def questions():
    first, second = "Anna Berg went to Paris on Monday. Mr Jones wrote to Zoë.", "the lazy dog sleeps while it is awake"
    rows = [
        ("Who went to Paris?", first, "Anna Berg"),
        ("When did Anna go?", first, "on Monday"),
        ("When did it rain?", second, None),
        ("What does the dog do?", second, "sleeps"),
        ("Who wrote?", first, "Mr Jones"),
    ]
    return [
        AnswerRecord(
            str(number), context, question, () if message is None else (Gold(message, context.index(message)),)
        )
        for number, (question, context, message) in enumerate(rows)
    ]


@pytest.fixture(scope="session")
def translations():
    rows = [
        ("Good morning", "the lazy dog"),
        ("a man sleeps while another is awake", "how odd isn't it?"),
        ("Who went to Paris?", "Anna Berg"),
        ("the fox jumps over the dog", "the dog"),
    ]
    return [TranslateRecord(*row) for row in rows]


@pytest.fixture(scope="session")
def documents():
    """Texts that nobody has labeled."""
    return [DocumentRecord(text) for text in SENTENCES]


@pytest.fixture(scope="session")
def longer():
    """A record, the same with its text three dozen times over."""

    def make(record):
        match record:
            case ClassifyRecord() | DocumentRecord():
                return replace(record, text=" ".join([record.text] * 36))
            case PairRecord():
                return replace(record, first=" ".join([record.first] * 36), second=" ".join([record.second] * 36))
            case TagRecord():
                return TagRecord.from_tokens(record.tokens * 36, record.tags and record.tags * 36, scheme="plain")
            case AnswerRecord():
                return replace(record, context=" ".join([record.context] * 36))
            case TranslateRecord():
                return replace(record, source=" ".join([record.source] * 36))
        raise NotImplementedError(record)

    return make
