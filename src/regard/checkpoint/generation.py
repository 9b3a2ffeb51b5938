"""Generation settings of a folder: special ids and decoding defaults, under our names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.write_folder import build_config_json
from regard.errors import FolderError, InputError, shorten
from regard.generate.settings import MAXIMUMS, DecodingSettings, SpecialIds

FILE = "generation_config.json"

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
SAMPLING = {
    "do_sample": "sample",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
}


def read_generation(checkpoint: Checkpoint) -> tuple[SpecialIds, dict[str, Any]]:
    """The ids the model starts and stops with, and what its folder asks of decoding."""
    fields = build_config_json(checkpoint, family_for(checkpoint.family, checkpoint.config))
    companion = checkpoint.companion_files.get(FILE, {})
    if not isinstance(companion, Mapping):
        raise FolderError(f"{FILE} does not hold settings by name. Fix it, or remove it.")
    fields = fields | {name: value for name, value in companion.items() if value is not None}
    vocabulary, encoder_decoder = checkpoint.config.output_vocabulary, checkpoint.config.kind == "encoder-decoder"
    start = "bos_token_id" if fields.get("decoder_start_token_id") is None else "decoder_start_token_id"
    ends = SpecialIds(
        eos=tuple(
            number for number in _ids(fields, "eos_token_id") if number < vocabulary
        ),  # other ids are never generated
        decoder_start=_id(fields, start, vocabulary) if encoder_decoder else None,
        forced_first=_id(fields, "forced_bos_token_id", vocabulary),
        forced_last=_id(fields, "forced_eos_token_id", vocabulary),
    )
    return ends, _settings(companion, encoder_decoder=encoder_decoder, vocabulary=vocabulary)


def _settings(fields: Mapping[str, Any], *, encoder_decoder: bool, vocabulary: int) -> dict[str, Any]:
    """Settings of transformers under our names. `max_length` includes a decoder's start token or prompt."""
    names = SETTINGS | (SAMPLING if fields.get("do_sample") else {})
    settings = {
        ours: _checked(fields, theirs, ours) for theirs, ours in names.items() if fields.get(theirs) is not None
    }
    for theirs, ours in (("max_length", "max_tokens"), ("min_length", "min_tokens")):
        value = fields.get(theirs)
        if encoder_decoder and ours not in settings and type(value) is int and value > 1:
            settings[ours] = min(value - 1, MAXIMUMS[ours])
    for word in settings.get("banned", ()):
        if not all(0 <= number < vocabulary for number in word):
            raise FolderError(f"{FILE}: bad_words_ids holds {shorten(str(word), 60)}, expected ids below {vocabulary}.")
    return settings


def _checked(fields: Mapping[str, Any], theirs: str, ours: str) -> Any:
    """One of their settings, of the type and in the range that decoding takes."""
    value = fields[theirs]
    if ours == "banned" and not (isinstance(value, list) and all(isinstance(word, list) for word in value)):
        raise FolderError(f"{FILE}: {theirs} is {shorten(repr(value), 60)}, expected lists of ids.")
    if ours == "sample" and not isinstance(value, bool):
        raise FolderError(f"{FILE}: {theirs} is {shorten(repr(value), 60)}, expected true or false.")
    try:
        DecodingSettings(**{"max_tokens": MAXIMUMS["max_tokens"] if ours == "min_tokens" else 1, ours: value})
    except InputError as error:
        raise FolderError(f"{FILE}: {theirs} cannot be used: {error} Change it there, or remove it.") from error
    return value


def _ids(fields: Mapping[str, Any], name: str) -> list[int]:
    """The ids under that name: a number, or a list of them (Llama 3 stops at any of three)."""
    value = fields.get(name)
    if value is None:
        return []
    ids = value if isinstance(value, list) else [value]
    if not ids or not all(type(number) is int and number >= 0 for number in ids):
        shown = shorten(repr(value), 60)
        raise FolderError(f"{name} is {shown}, expected the id of a token, or a list of them.")
    return list(ids)


def _id(fields: Mapping[str, Any], name: str, vocabulary: int) -> int | None:
    ids = _ids(fields, name)
    if ids and ids[0] >= vocabulary:
        raise FolderError(f"{name} is {ids[0]}, expected an id below {vocabulary}: the size of the vocabulary.")
    return ids[0] if ids else None
