"""Settings of config.json, read by the family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.checkpoint.folders import configure, written
from tests.references import transformers

from regard.checkpoint.folder import read_folder
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError
from regard.ragged import Ragged


def test_old_settings_of_rotary_positions(tmp_path: Path) -> None:
    """As they were written before they stood in one place; the reference reads them the same."""
    for name, old in {
        "tiny-llama": {"rope_parameters": ..., "rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}},
        "tiny-modernbert": {
            "rope_parameters": ...,
            "layer_types": ...,
            "global_rope_theta": 900.0,
            "local_rope_theta": 50.0,
            "global_attn_every_n_layers": 2,
        },
    }.items():
        folder = written(tmp_path / name, name, {})
        configure(folder, **old)
        ids = torch.arange(3, 40).unsqueeze(0)
        checkpoint = read_folder(folder)
        write_folder(tmp_path / f"{name} again", checkpoint)
        with torch.no_grad():
            message = checkpoint.network(Ragged.of(ids.tolist())).hidden
            for place in (folder, tmp_path / f"{name} again"):
                theirs = transformers.AutoModel.from_pretrained(place)(ids).last_hidden_state[0]
                assert torch.allclose(message, theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("tiny-bert", {"model_type": "brt"}, 'the family "brt" is not known. Did you mean "bert"?'),
        ("tiny-bert", {"model_type": ...}, 'has no "model_type". Expected one of: bert, roberta'),
        ("tiny-bert", {"model_type": ["bert"]}, 'has no "model_type"'),
        ("tiny-bert", {"architectures": ["BertForMaskdLM"]}, 'Did you mean "BertForMaskedLM"?'),
        ("tiny-bert", {"architectures": "BertModel"}, "expected a list with the name of a class"),
        ("tiny-bert", {"architectures": [{}]}, "expected a list with the name of a class"),
        ("tiny-bert", {"vocab_size": "100"}, "vocab_size is '100', expected a whole number."),
        ("tiny-bert", {"vocab_size": 100.0}, "vocab_size is 100.0, expected a whole number."),
        ("tiny-bert", {"vocab_size": None}, "vocab_size is None, expected a whole number."),
        ("tiny-bert", {"num_hidden_layers": True}, "num_hidden_layers is True, expected a whole number."),
        ("tiny-bert", {"num_hidden_layers": 10**9}, "layers is 1000000000, expected at most 4,096."),
        ("tiny-bert", {"num_hidden_layers": 0}, "layers must be at least 1, not 0."),
        ("tiny-bert", {"layer_norm_eps": -1}, "eps of the norms must be above 0 and below 1, not -1."),
        ("tiny-bert", {"layer_norm_eps": 0}, "eps of the norms must be above 0 and below 1, not 0."),
        ("tiny-bert", {"hidden_dropout_prob": 1.5}, "dropout must be at least 0 and below 1, not 1.5."),
        ("tiny-bert", {"attention_probs_dropout_prob": -0.1}, "attention dropout must be at least 0 and below 1"),
        (
            "tiny-bert",
            {"initializer_range": -0.02},
            "init_std, the standard deviation of initial weights, must be at least 0, not -0.02.",
        ),
        ("tiny-bert", {"type_vocab_size": -2}, "segments must be at least 0, not -2."),
        ("tiny-gpt2", {"layer_norm_epsilon": -1e-5}, "eps of the norms must be above 0"),
        ("tiny-t5", {"relative_attention_num_buckets": 1}, "at least 4 buckets, not 1."),
        ("tiny-modernbert", {"local_attention": -8}, "window must be at least 0, not -4."),
        ("tiny-bert", {"hidden_size": 10**18}, "heads do not divide|cannot be built|expected at most"),
        ("tiny-bert", {"hidden_dropout_prob": "0.1"}, "hidden_dropout_prob is '0.1', expected a number."),
        ("tiny-bert", {"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob is nan, expected a number."),
        ("tiny-bert", {"hidden_dropout_prob": 3}, "dropout must be at least 0 and below 1"),
        ("tiny-bert", {"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', expected true or false."),
        ("tiny-bert", {"hidden_act": 5}, "hidden_act is 5, expected a text."),
        ("tiny-bert", {"hidden_act": "gelo"}, 'hidden_act "gelo" is not known. Did you mean "gelu"?'),
        ("tiny-bert", {"num_attention_heads": 5}, "5 heads do not divide the width 32. Use 4 heads"),
        ("tiny-bert", {"num_attention_heads": 0}, "heads must be at least 1, not 0."),
        ("tiny-bert", {"max_position_embeddings": 0}, "max_tokens must be at least 1, not 0"),
        ("tiny-bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("tiny-bert", {"is_decoder": True}, "is_decoder is True, but this family is read only with False."),
        ("tiny-bert", {"quantization_config": {"bits": 8}}, "quantization_config is {'bits': 8}"),
        ("tiny-bert", {"architectures": ["BertForTokenClassification"], "num_labels": "x"}, "num_labels is 'x'"),
        ("tiny-bert", {"id2label": ["a"]}, "\"id2label\" is ['a'], expected labels by number."),
        ("tiny-bert", {"id2label": {"a": "b"}}, 'a key of "id2label" is not a number'),
        ("tiny-bert", {"id2label": {"0": "a", "2": "b"}}, "must number labels from 0 without a gap, not [0, 2]."),
        ("tiny-roberta", {"max_position_embeddings": 2}, "max_position_embeddings must be more than 2"),
        ("tiny-albert", {"inner_group_num": 2}, "inner_group_num is 2"),
        ("tiny-gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ("tiny-gpt2", {"n_inner": "64"}, "n_inner is '64', expected a whole number."),
        ("tiny-llama", {"attention_bias": True}, "attention_bias is True"),
        ("tiny-llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ("tiny-llama", {"num_key_value_heads": 3}, "3 key-value heads do not divide 4 heads."),
        ("tiny-llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ("tiny-llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ("tiny-llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, 'rope_type "dynamic" cannot be'),
        ("tiny-llama", {"rope_parameters": {"rope_type": "linear"}}, "lacks the setting 'factor'."),
        ("tiny-llama", {"rope_parameters": "linear"}, "cannot be read"),
        ("tiny-modernbert", {"attention_bias": True}, "attention_bias is True"),
        ("tiny-modernbert", {"layer_types": ["sliding_attention", "full_attention"] * 2}, "each n-th from the first"),
        ("tiny-modernbert", {"layer_types": ["full_attention"] * 3}, "of 4 layers, each n-th from the first"),
        ("tiny-modernbert", {"layer_types": ..., "global_attn_every_n_layers": 0}, "expected at least 1."),
        ("tiny-modernbert", {"classifier_pooling": "max"}, 'classifier_pooling "max" is not known.'),
        ("tiny-modernbert", {"classifier_activation": "elu"}, 'classifier_activation "elu" is not known.'),
        ("tiny-modernbert", {"hidden_activation": "relu"}, 'hidden_activation "relu" has no gated form here.'),
        ("tiny-t5", {"feed_forward_proj": "gated-relu"}, 'feed_forward_proj "gated-relu" is not known.'),
        ("tiny-bart", {"decoder_ffn_dim": 3}, "decoder_ffn_dim is 3, but this family is read only with 128."),
        ("tiny-marian", {"decoder_vocab_size": 7}, "decoder_vocab_size is 7, but this family is read only with 100"),
        (
            "tiny-marian",
            {"share_encoder_decoder_embeddings": 1},
            "share_encoder_decoder_embeddings is 1, expected true",
        ),
    ],
)
def test_settings_that_cannot_be_read_are_named(
    tmp_path: Path, name: str, settings: dict[str, Any], expected: str
) -> None:
    folder = written(tmp_path / "model", name)
    configure(folder, **settings)
    with pytest.raises(FolderError) as caught:
        read_folder(folder)
    message = str(caught.value)
    assert message.startswith(f"{folder}/config.json")
    assert any(choice in message for choice in expected.split("|"))
    assert message.count("config.json") == 1
