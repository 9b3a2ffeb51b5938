"""Settings that cannot be, and pairs that contradict each other, are refused with both named."""

from typing import Any

import pytest

from regard.errors import InputError
from regard.generate.settings import DecodingSettings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beams": 0}, "beams must be a whole number of at least 1, not 0"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1, not 0"),
        ({"max_tokens": 2.5}, "max_tokens must be a whole number"),
        ({"top_k": 0}, "top_k must be a whole number of at least 1"),
        ({"top_p": 0.0}, "top_p must be a number above 0 and at most 1, not 0.0"),
        ({"top_p": 1.1}, "top_p must be a number above 0 and at most 1"),
        ({"temperature": 0}, "temperature must be a number from 0.0001 to 10000, not 0"),
        ({"temperature": float("nan")}, "temperature must be a number from 0.0001 to 10000"),
        ({"min_p": "a"}, "min_p must be a number"),
        ({"early_stop": "soon"}, 'Choose True, False or "never"'),
        ({"stop": ""}, "stop contains an empty word"),
        ({"banned": [[]]}, "banned contains an empty word"),
        ({"banned": 3}, "banned is 3, expected words"),
        ({"banned": [["a"]]}, "banned is .*, expected words"),
        ({"stop": [[3]]}, "stop is .*, expected texts"),
        ({"seed": "x"}, "seed is 'x', expected a whole number"),
        ({"seed": 10**30}, "seed is 10+, expected a whole number"),
        ({"beams": 10**9}, "beams must be at most 1,000, not 1000000000"),
        ({"best": 10**9}, "best must be at most 1,000"),
        ({"max_tokens": 10**9}, "max_tokens must be at most 1,000,000"),
        ({"top_k": 10**12}, "top_k must be at most"),
        ({"no_repeat": 10**9}, "no_repeat must be at most 1,000,000"),
        ({"beams": 1000, "max_tokens": 10**6}, "together at most 10,000,000"),
        ({"temperature": 1e-300}, "temperature must be a number from"),
        ({"length_penalty": 1e300}, "length_penalty must be a number from -20 to 20"),
        ({"max_tokens": "9" * 10**5}, "max_tokens must be a whole number of at least 1, not '9{40,60}…"),
    ],
)
def test_what_cannot_be(options, message):
    with pytest.raises(InputError, match=message):
        DecodingSettings(**options)
    with pytest.raises(InputError, match=message):
        DecodingSettings.from_options(options)


@pytest.mark.parametrize(
    "options",
    [
        {"min_tokens": 60, "max_tokens": 50},
        {"beams": 2, "top_p": 0.5},
        {"best": 2, "beams": 1},
        {"best": 3, "beams": 2},
        {"slide": True, "beams": 2},
        {"forced": "cat", "banned": "cat"},
        {"forced": [[1, 2]], "banned": [[1, 2]]},
    ],
    ids=lambda given: " and ".join(given),
)
def test_what_contradicts_is_named(options):
    with pytest.raises(InputError) as error:
        DecodingSettings(**options)
    assert "contradict" in str(error.value)
    assert all(name in str(error.value) for name in options)


def test_one_word_is_a_list_of_one():
    options: dict[str, Any] = {"stop": "\n", "banned": [3, 4], "forced": ["a", [5]]}
    settings = DecodingSettings(**options)
    assert (settings.stop, settings.banned, settings.forced) == (("\n",), ([3, 4],), ("a", [5]))


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(InputError, match=r'"max_token" is not a decoding setting\. Did you mean "max_tokens"'):
        DecodingSettings.from_options({"max_token": 3})


def test_what_the_folder_says_gives_way():
    defaults: dict[str, Any] = {"beams": 4, "length_penalty": 2.0, "max_tokens": 99, "no_repeat": 3, "min_tokens": 10}
    assert DecodingSettings.from_options({}, defaults=defaults) == DecodingSettings(**defaults)
    assert DecodingSettings.from_options({"top_p": 0.5}, defaults=defaults) == DecodingSettings(
        max_tokens=99, no_repeat=3, min_tokens=10, top_p=0.5
    )
    assert DecodingSettings.from_options({"max_tokens": 5}, defaults=defaults).min_tokens == 5
    drawing = {"sample": True, "temperature": 0.6, "top_p": 0.9}
    assert DecodingSettings.from_options({"beams": 2}, defaults=drawing) == DecodingSettings(beams=2)
    assert DecodingSettings.from_options({"top_p": 0.5}, defaults=drawing) == DecodingSettings(
        sample=True, temperature=0.6, top_p=0.5
    )
    assert DecodingSettings.from_options({"beams": None}, defaults=defaults).beams == 4
