import pytest
import torch
from tests.references import transformers

from regard.checkpoint.families import PRESETS, preset
from regard.errors import InputError
from regard.model.network import build_network

PUBLISHED = {
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "bert-base-uncased": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-base-chinese": 102_267_648,
    "bert-base-multilingual-cased": 177_853_440,
    "bert-large-uncased": 335_141_888,
}


def both_sides(**settings):
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in settings.items()}


PEERS = {
    "roberta-base": ("Roberta", "Model", {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}),
    "distilbert-base": ("DistilBert", "Model", {}),
    "electra-small": ("Electra", "Model", {}),
    "albert-base": (
        "Albert",
        "Model",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_layers": 12},
    ),
    "modernbert-base": ("ModernBert", "Model", {}),
    "gpt2": ("GPT2", "LMHeadModel", {}),
    "t5-small": ("T5", "ForConditionalGeneration", {}),
    "bart-base": (
        "Bart",
        "Model",
        {"vocab_size": 50265, "d_model": 768, **both_sides(layers=6, ffn_dim=3072, attention_heads=12)},
    ),
    "marian": (
        "Marian",
        "MTModel",
        {"vocab_size": 58101, "pad_token_id": 58100, "d_model": 512}
        | both_sides(layers=6, ffn_dim=2048, attention_heads=8),
    ),
    "pegasus-large": (
        "Pegasus",
        "ForConditionalGeneration",
        {"vocab_size": 96103, "max_position_embeddings": 512} | both_sides(layers=16),
    ),
}

FIXED_POSITIONS = ("marian", "pegasus-large")


def parameters(name):
    made = preset(name)
    with torch.device("meta"):
        network = build_network(made.config, made.heads)
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_bert_are_those_published(name):
    assert parameters(name) == PUBLISHED[name]


@pytest.mark.parametrize("name", PEERS)
def test_parameters_are_as_many_as_in_transformers(name):
    family, kind, settings = PEERS[name]
    with torch.device("meta"):
        theirs = getattr(transformers, family + kind)(getattr(transformers, f"{family}Config")(**settings))
    fixed = [path for path, _ in theirs.named_parameters() if name in FIXED_POSITIONS and "embed_positions" in path]
    counted = sum(parameter.numel() for path, parameter in theirs.named_parameters() if path not in fixed)
    assert parameters(name) == counted


def test_the_transformer_of_2017_has_its_size():
    """Counted by hand: one shared table of words, and 6 layers on each side."""
    attention, feedforward, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    assert parameters("transformer-base") == 37000 * 512 + 6 * (encoder + decoder)


def test_every_family_has_a_tiny_preset():
    families = {made.family for made in PRESETS.values()}
    assert {made.family for name, made in PRESETS.items() if name.startswith("tiny-")} == families
    assert all(parameters(name) < 100_000 for name in PRESETS if name.startswith("tiny-"))


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(InputError, match=r'preset "bert-tinny" is not known: .* Did you mean "bert-tiny"'):
        preset("bert-tinny")
