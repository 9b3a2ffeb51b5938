"""Every family against transformers, both ways: what it saved is read here, what is saved here opens there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.references import transformers

from regard.checkpoint.families import FAMILIES, PRESETS, family_for
from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import export_tensors, write_folder
from regard.ragged import Ragged

LENGTHS = [1, 100, 7, 33, 34]
TARGETS = [5, 1, 60, 2, 30]
LIKE_BERT: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 128,
}
LIKE_BART: dict[str, Any] = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 128,
}
LIKE_T5: dict[str, Any] = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3}
LIKE_GATED_T5 = LIKE_T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SMALL_IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**LIKE_BERT),
    "bert, not tied": lambda: transformers.BertConfig(**LIKE_BERT, tie_word_embeddings=False),
    "bert, tanh gelu": lambda: transformers.BertConfig(**LIKE_BERT, hidden_act="gelu_new"),
    "roberta": lambda: transformers.RobertaConfig(**LIKE_BERT),
    "distilbert": lambda: transformers.DistilBertConfig(
        vocab_size=50, dim=16, n_layers=3, n_heads=2, hidden_dim=32, max_position_embeddings=128
    ),
    "electra": lambda: transformers.ElectraConfig(**LIKE_BERT, embedding_size=8),
    "electra, square": lambda: transformers.ElectraConfig(**LIKE_BERT, embedding_size=16),
    "albert": lambda: transformers.AlbertConfig(**LIKE_BERT, embedding_size=8),
    "albert, groups": lambda: transformers.AlbertConfig(**LIKE_BERT, embedding_size=8, num_hidden_groups=3),
    "modernbert": lambda: transformers.ModernBertConfig(
        **LIKE_BERT, **SMALL_IDS, cls_token_id=1, sep_token_id=2, local_attention=8
    ),
    "modernbert, mean": lambda: transformers.ModernBertConfig(
        **LIKE_BERT, **SMALL_IDS, cls_token_id=1, sep_token_id=2, local_attention=6, classifier_pooling="mean"
    ),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=128, bos_token_id=0, eos_token_id=0
    ),
    "llama": lambda: transformers.LlamaConfig(**{**LIKE_BERT, "num_attention_heads": 4}, num_key_value_heads=2),
    "llama, stretched": lambda: transformers.LlamaConfig(
        **{**LIKE_BERT, "num_attention_heads": 4},
        num_key_value_heads=1,
        head_dim=8,
        tie_word_embeddings=True,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "llama, yarn": lambda: transformers.LlamaConfig(
        **LIKE_BERT,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "t5": lambda: transformers.T5Config(**LIKE_T5),
    "t5, gated": lambda: transformers.T5Config(**LIKE_GATED_T5),
    "bart": lambda: transformers.BartConfig(**LIKE_BART),
    "marian": lambda: transformers.MarianConfig(
        **LIKE_BART, pad_token_id=0, decoder_start_token_id=0, scale_embedding=True, activation_function="swish"
    ),
    "pegasus": lambda: transformers.PegasusConfig(**LIKE_BART, scale_embedding=True, activation_function="relu"),
}
ENCODERS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
CLASSES = {
    "bert": (*ENCODERS, "ForPreTraining", "ForNextSentencePrediction"),
    "bert, not tied": ("ForMaskedLM",),
    "bert, tanh gelu": ("ForMaskedLM",),
    "electra": (*ENCODERS, "ForPreTraining"),
    "electra, square": ("ForMaskedLM",),
    "albert": (*ENCODERS, "ForPreTraining"),
    "albert, groups": ("Model",),
    "modernbert, mean": ("ForSequenceClassification",),
    "gpt2": ("Model", "LMHeadModel"),
    "llama": ("Model", "ForCausalLM"),
    "llama, stretched": ("ForCausalLM",),
    "llama, yarn": ("ForCausalLM",),
    "t5": ("Model", "ForConditionalGeneration"),
    "t5, gated": ("ForConditionalGeneration",),
    "bart": ("Model", "ForConditionalGeneration"),
    "marian": ("Model", "MTModel"),
    "pegasus": ("Model", "ForConditionalGeneration"),
}
CASES = [(name, kind) for name in CONFIGS for kind in CLASSES.get(name, ENCODERS)]


@dataclass
class Reference:
    model: torch.nn.Module
    folder: Path

    def __call__(self, ids, targets):
        """Logits of all real tokens (or of the sequences), from a padded batch."""
        padded, mask = pad(ids)
        more = {}
        if self.model.config.is_encoder_decoder:
            more["decoder_input_ids"] = pad(targets)[0]
        message = self.model(input_ids=padded, attention_mask=mask, **more)
        kind = type(self.model).__name__
        if kind.endswith(("SequenceClassification", "NextSentencePrediction")):
            return message.logits
        if kind.endswith("QuestionAnswering"):
            rows = torch.stack([message.start_logits, message.end_logits], -1)
        elif kind.endswith("Model") and "LM" not in kind and "MT" not in kind:
            rows = message.last_hidden_state
        else:
            rows = message.prediction_logits if hasattr(message, "prediction_logits") else message.logits
        lengths = [len(row) for row in (targets if more else ids)]
        flat = torch.cat([rows[i, :length] for i, length in enumerate(lengths)])
        return flat.unsqueeze(1) if flat.dim() == 1 else flat


def pad(rows):
    longest = max(map(len, rows))
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows]), mask


def sequences(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, 50, (length,), generator=generator).tolist() for length in lengths]


def build(name, kind, folder, config=None):
    """A random model, its weights spread widely enough that a wrong formula shows."""
    config = CONFIGS[name]() if config is None else config
    for key in list(vars(config)):
        if "drop" in key and isinstance(getattr(config, key), float):
            setattr(config, key, 0.0)
    config.num_labels = 3 if kind in ("ForSequenceClassification", "ForTokenClassification") else 2
    stem = type(config).__name__.removesuffix("Config")
    torch.manual_seed(0)
    model = getattr(transformers, "MarianMTModel" if kind == "MTModel" else stem + kind)(config)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if "embed_positions" not in path or stem == "Bart":
                parameter.normal_(0, 0.3) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    model.tie_weights()
    model.eval().save_pretrained(folder)
    return Reference(model, Path(folder))


def run(network, ids, targets):
    both = network.config.kind == "encoder-decoder"
    return network(Ragged.of(ids), Ragged.of(targets) if both else None)


def said_by(output, kind):
    if kind == "Model":
        return output.hidden
    return output.next_sentence if kind == "ForNextSentencePrediction" else output.logits


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name} {kind}" for name, kind in CASES])
def test_both_ways(name, kind, tmp_path):
    reference = build(name, kind, tmp_path / "theirs")
    ids, targets = sequences(LENGTHS, 1), sequences(TARGETS, 2)
    with torch.no_grad():
        expected = reference(ids, targets)
        checkpoint = read_folder(reference.folder)
        assert torch.allclose(said_by(run(checkpoint.network, ids, targets), kind), expected, atol=1e-4)
        write_folder(tmp_path / "ours", checkpoint)
        again, report = type(reference.model).from_pretrained(tmp_path / "ours", output_loading_info=True)
        assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
        assert torch.allclose(Reference(again.eval(), tmp_path)(ids, targets), expected, atol=1e-6)
    theirs, ours = (json.loads((tmp_path / side / "config.json").read_text()) for side in ("theirs", "ours"))
    assert ours == theirs | {key: ours[key] for key in ours if key not in theirs}
    assert not set(theirs) - set(ours)


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name} {kind}" for name, kind in CASES])
def test_one_optimizer_step_gives_the_same_weights(name, kind, tmp_path):
    reference = build(name, kind, tmp_path / "theirs")
    checkpoint = read_folder(reference.folder)
    ids, targets = sequences([1, 20, 7, 3], 3), sequences([5, 1, 9, 2], 4)
    for model, speak in (
        (reference.model, lambda: reference(ids, targets)),
        (checkpoint.network, lambda: said_by(run(checkpoint.network, ids, targets), kind)),
    ):
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        logits = speak()
        torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)) % logits.shape[1]).backward()
        optimizer.step()
    family = family_for(checkpoint.family, checkpoint.config)
    expected = reference.model.state_dict()
    unused = () if checkpoint.config.tied else family.untied  # biases that are stored there and do nothing
    for path, tensor in export_tensors(checkpoint, family).items():
        assert path in unused or torch.allclose(tensor, expected[path], atol=1e-5), path


@pytest.mark.parametrize(
    "name",
    [name for name, made in PRESETS.items() if name.startswith("tiny-") and FAMILIES[made.family].in_transformers],
)
def test_a_preset_opens_there_and_comes_back_the_same(name, tmp_path):
    checkpoint = from_preset(name, dtype=torch.float32)
    write_folder(tmp_path / "ours", checkpoint)
    kind = json.loads((tmp_path / "ours" / "config.json").read_text())["architectures"][0]
    there, report = getattr(transformers, kind).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids, targets = sequences(LENGTHS, 1), sequences(TARGETS, 2)
    with torch.no_grad():
        output = run(checkpoint.network, ids, targets)
        expected = Reference(there.eval(), tmp_path)(ids, targets)
    message = output.hidden if output.logits is None else output.logits
    assert torch.allclose(message, expected, atol=1e-4)
    again = read_folder(tmp_path / "ours")
    assert (again.family, again.config) == (checkpoint.family, checkpoint.config)
    there.save_pretrained(tmp_path / "back")
    assert read_folder(tmp_path / "back").config.width == checkpoint.config.width


SHAPES = {
    "bert": ("num_attention_heads", "hidden_size", "num_hidden_layers", "intermediate_size"),
    "modernbert": ("num_attention_heads", "hidden_size", "num_hidden_layers", "intermediate_size"),
    "gpt2": ("n_head", "n_embd", "n_layer", "n_inner"),
    "llama": ("num_attention_heads", "hidden_size", "num_hidden_layers", "intermediate_size"),
    "t5": ("num_heads", "d_model", "num_layers", "d_ff"),
}


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    heads=st.integers(1, 4),
    head_width=st.sampled_from([2, 4, 6, 8]),
    layers=st.integers(1, 3),
    inner=st.integers(1, 40),
    lengths=st.lists(st.integers(1, 100), min_size=1, max_size=5),
)
def test_any_shape(name, tmp_path, heads, head_width, layers, inner, lengths):
    config = CONFIGS[name]()
    for key, value in zip(SHAPES[name], (heads, heads * head_width, layers, inner), strict=True):
        setattr(config, key, value)
    if name == "llama":
        config.num_key_value_heads, config.head_dim = 1, head_width
    if name == "modernbert":
        config.layer_types = ["sliding_attention" if i % 3 else "full_attention" for i in range(layers)]
    if name == "t5":
        config.num_decoder_layers = layers
    reference = build(name, "Model", tmp_path / "theirs", config)
    ids = sequences(lengths, 5)
    with torch.no_grad():
        expected = reference(ids, ids)
        assert torch.allclose(run(read_folder(reference.folder).network, ids, ids).hidden, expected, atol=1e-4)
