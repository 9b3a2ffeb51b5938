"""What a folder says of generating: its ids and its usual settings, under our names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import Checkpoint, foreign_config
from regard.errors import FolderError
from regard.generate.settings import Ends

SETTINGS = {
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "num_beams": "beams",
    "length_penalty": "length_penalty",
    "early_stopping": "early_stop",
    "repetition_penalty": "repetition_penalty",
    "no_repeat_ngram_size": "no_repeat",
    "bad_words_ids": "banned",
}
DRAWING = {
    "do_sample": "sample",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical",
}


def read_generation(checkpoint: Checkpoint) -> tuple[Ends, dict[str, Any]]:
    """The ids the model starts and stops with, and what its folder asks of decoding."""
    said = foreign_config(checkpoint, family_for(checkpoint.family, checkpoint.config))
    companion = checkpoint.companions.get("generation_config.json", {})
    if not isinstance(companion, Mapping):
        raise FolderError("generation_config.json does not hold settings by name. Mend it, or remove it.")
    said = said | {name: value for name, value in companion.items() if value is not None}
    stop = said.get("eos_token_id")
    ends = Ends(
        stop=tuple(_ids(said, "eos_token_id")) if stop is not None else (),
        start=_id(said, "decoder_start_token_id")
        if said.get("decoder_start_token_id") is not None
        else _id(said, "bos_token_id"),
        first=_id(said, "forced_bos_token_id"),
        last=_id(said, "forced_eos_token_id"),
    )
    return ends, _settings(companion, both=checkpoint.config.kind == "encoder-decoder")


def _settings(said: Mapping[str, Any], *, both: bool) -> dict[str, Any]:
    """Their settings under our names. `max_length` counts the start token beside an encoder, and a prompt else."""
    names = SETTINGS | (DRAWING if said.get("do_sample") else {})
    found = {ours: said[theirs] for theirs, ours in names.items() if said.get(theirs) is not None}
    for theirs, ours in (("max_length", "max_tokens"), ("min_length", "min_tokens")):
        given = said.get(theirs)
        if both and ours not in found and isinstance(given, int) and given > 1:
            found[ours] = given - 1
    return found


def _ids(said: Mapping[str, Any], name: str) -> list[int]:
    given = said.get(name)
    ids = [number for number in (given if isinstance(given, list) else [given]) if type(number) is int and number >= 0]
    if not ids or (isinstance(given, list) and len(ids) < len(given)):
        raise FolderError(f"{name} is {given!r}, expected the id of a token, or a list of them.")
    return ids


def _id(said: Mapping[str, Any], name: str) -> int | None:
    return None if said.get(name) is None else _ids(said, name)[0]
