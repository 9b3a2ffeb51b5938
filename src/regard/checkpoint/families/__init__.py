"""The registry of families. To add one: a file in this folder, a line in `FAMILIES`, a parity test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from regard.checkpoint.extra_fields import KEY, format_for, regard_fields, regard_format
from regard.checkpoint.families import (
    albert,
    bag,
    bart,
    bert,
    distilbert,
    electra,
    gpt2,
    llama,
    marian,
    modernbert,
    pegasus,
    recurrent,
    roberta,
    t5,
)
from regard.checkpoint.family import Family, HFConfig
from regard.config import Config
from regard.errors import FolderError, InputError, call_or_command, did_you_mean, suggest

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        bert.BERT,
        roberta.ROBERTA,
        distilbert.DISTILBERT,
        electra.ELECTRA,
        albert.ALBERT,
        modernbert.MODERNBERT,
        gpt2.GPT2,
        llama.LLAMA,
        t5.T5,
        bart.BART,
        marian.MARIAN,
        marian.TRANSFORMER,
        pegasus.PEGASUS,
        recurrent.RECURRENT,
        recurrent.RECURRENT_LANGUAGE,
        recurrent.ELMO,
        bag.NGRAM,
        bag.STATIC,
        bag.NGRAM_LANGUAGE,
    )
}


@dataclass(frozen=True)
class Preset:
    """An untrained network by name: its family, its settings and its heads."""

    family: str
    config: Config
    heads: Mapping[str, int]


class Presets(Mapping[str, Preset]):
    """The presets of all families by name."""

    def __getitem__(self, name: str) -> Preset:
        for family in FAMILIES.values():
            if name in family.presets:
                return Preset(family.name, family.presets[name], family.preset_heads)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for family in FAMILIES.values() for name in family.presets)

    def __len__(self) -> int:
        return sum(len(family.presets) for family in FAMILIES.values())


PRESETS = Presets()


def register(family: Family) -> None:
    """Add a family that is defined outside this package, with its presets."""
    FAMILIES[family.name] = family


def preset(name: str) -> Preset:
    """The preset of that name."""
    if name not in PRESETS:
        similar = suggest(name, PRESETS, 5) or did_you_mean(name, PRESETS)
        trained = call_or_command("regard.load", "--start")
        raise InputError(
            f'preset "{name}" is not known: presets are settings of untrained networks.{similar} '
            f"A trained model is given with {trained}."
        )
    return PRESETS[name]


def family_of(hf: HFConfig) -> Family:
    """The family of a config.json."""
    name = hf.get("model_type")
    if not isinstance(name, str):
        raise FolderError(f'config.json has no "model_type". Expected one of: {", ".join(FAMILIES)}.')
    if name == KEY:
        return regard_format(_family_named(regard_fields(hf).get("family")))
    for family in FAMILIES.values():
        if not family.in_transformers and name == family.model_type:
            return family
    return _family_named(name).for_json(hf)


def family_for(name: str, config: Config) -> Family:
    """The family of that name, in the variant for these settings; our own format if the family cannot hold them."""
    if name not in FAMILIES:
        raise FolderError(f'the family "{name}" is not known.{did_you_mean(name, FAMILIES)}')
    return format_for(FAMILIES[name].for_config(config), config)


def _family_named(name: object) -> Family:
    if not isinstance(name, str) or name not in FAMILIES:
        shown = str(name)[:80]
        raise FolderError(f'config.json: the family "{shown}" is not known.{did_you_mean(shown, FAMILIES)}')
    return FAMILIES[name]
