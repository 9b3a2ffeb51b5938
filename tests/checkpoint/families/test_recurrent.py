"""Settings of recurrent networks: encoder-decoders, language models and ELMo."""

from __future__ import annotations

import pytest

from regard.checkpoint.families.recurrent import ELMO, RECURRENT, RECURRENT_LANGUAGE
from regard.checkpoint.family import Family
from regard.errors import FolderError

PRESETS = [(family, name) for family in (RECURRENT, RECURRENT_LANGUAGE, ELMO) for name in family.presets]


@pytest.mark.parametrize(("family", "name"), PRESETS, ids=[name for _, name in PRESETS])
def test_settings_survive_config_json(family: Family, name: str) -> None:
    assert family.read({**family.defaults, **family.write(family.presets[name])}) == family.presets[name]


def test_a_family_reads_its_own_kind_alone() -> None:
    with pytest.raises(FolderError, match="kind"):
        RECURRENT_LANGUAGE.read({**RECURRENT_LANGUAGE.defaults, "kind": "encoder"})
    with pytest.raises(FolderError, match="kind"):
        ELMO.read({**ELMO.defaults, "kind": "decoder"})
