"""The families, one file each. To add one: a file here, a line below, a parity test."""

from __future__ import annotations

from collections.abc import Mapping

from regard.checkpoint.extra_fields import KEY, format_for, regard_fields, regard_format
from regard.checkpoint.families.albert import ALBERT
from regard.checkpoint.families.bart import BART
from regard.checkpoint.families.bert import BERT
from regard.checkpoint.families.distilbert import DISTILBERT
from regard.checkpoint.families.electra import ELECTRA
from regard.checkpoint.families.gpt2 import GPT2
from regard.checkpoint.families.llama import LLAMA
from regard.checkpoint.families.marian import LAYOUT, MARIAN, MARIAN_APART, SHARED, TRANSFORMER, TRANSFORMER_APART
from regard.checkpoint.families.modernbert import MODERNBERT
from regard.checkpoint.families.recurrent import ELMO, RECURRENT, RECURRENT_LANGUAGE
from regard.checkpoint.families.roberta import ROBERTA
from regard.checkpoint.families.t5 import T5, T5_GATED
from regard.checkpoint.family import Family, HFConfig
from regard.config import Config, ModelConfig
from regard.errors import FolderError, did_you_mean

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        BERT,
        ROBERTA,
        DISTILBERT,
        ELECTRA,
        ALBERT,
        MODERNBERT,
        GPT2,
        LLAMA,
        T5,
        BART,
        MARIAN,
        TRANSFORMER,
        RECURRENT,
        RECURRENT_LANGUAGE,
        ELMO,
    )
}
OURS = {family.model_type or family.name: family for family in FAMILIES.values() if not family.in_transformers}

APART: Mapping[str, Family] = {family.name: family for family in (MARIAN_APART, TRANSFORMER_APART)}


def family_of(foreign: HFConfig) -> Family:
    """The family of a config.json."""
    name = foreign.get("model_type")
    if not isinstance(name, str):
        raise FolderError(f'config.json has no "model_type". Expected one of: {", ".join(FAMILIES)}.')
    if name == KEY:
        return regard_format(_named(regard_fields(foreign).get("family")))
    if name in OURS:
        return OURS[name]
    if name not in FAMILIES:
        raise FolderError(f'config.json: the family "{name}" is not known.{did_you_mean(name, FAMILIES)}')
    if name == "marian":
        family = TRANSFORMER if LAYOUT in foreign else MARIAN
        return family if foreign.get(SHARED, True) else APART[family.name]
    if name == "t5" and str(foreign.get("feed_forward_proj", "")).startswith("gated"):
        return T5_GATED
    return FAMILIES[name]


def family_for(name: str, config: Config) -> Family:
    """The family of that name for these settings (T5 and Marian have two); our own format where it cannot hold them."""
    if name not in FAMILIES:
        raise FolderError(f'the family "{name}" is not known.{did_you_mean(name, FAMILIES)}')
    if name in APART and config.target_vocabulary is not None:
        return format_for(APART[name], config)
    gated = isinstance(config, ModelConfig) and config.activation in ("geglu", "geglu-tanh", "swiglu")
    return format_for(T5_GATED if name == "t5" and gated else FAMILIES[name], config)


def _named(name: object) -> Family:
    """The family of a folder in our own format."""
    if not isinstance(name, str) or name not in FAMILIES:
        shown = str(name)[:80]
        raise FolderError(f'config.json: the family "{shown}" is not known.{did_you_mean(shown, FAMILIES)}')
    return FAMILIES[name]
