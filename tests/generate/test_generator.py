"""Models that write: prompts in, texts out, and clear words where that cannot be."""

import dataclasses
import json

import pytest

import regard
from regard.errors import FolderError, InputError


@pytest.fixture(scope="module")
def writer(lettered):
    return lettered()


@pytest.fixture(scope="module")
def translator(lettered):
    return lettered("tiny-transformer", seed=1)


SETTINGS = {"max_tokens": 12, "sample": True, "seed": 0}


def test_one_prompt_or_several(writer):
    one = writer.generate("Once upon", **SETTINGS)
    assert isinstance(one, str)
    assert len(one) == 12
    assert writer.generate(["Once upon", "a time"], **SETTINGS)[0] == one


@pytest.mark.parametrize("settings", [{}, {"beams": 2}])
def test_rows_beyond_the_vocabulary_are_no_text(lettered, writer, settings):
    """Matrices are filled up to round sizes, so that a network may say what its tokenizer does not know."""
    known = set(map(chr, range(32, 72)))
    expected = "".join(char for char in writer.generate("A", max_tokens=12, **settings) if char in known)
    assert 0 < len(expected) < 12
    fewer = lettered(size=40)
    assert fewer.generate("A", max_tokens=12, **settings) == expected
    assert fewer.generate("A", max_tokens=12, stop="~~", **settings) == expected
    if not settings:
        assert "".join(fewer.stream("A", max_tokens=12)) == expected


@pytest.mark.parametrize("settings", [{}, {"top_p": 0.9, "seed": 3}])
def test_a_stream_joins_to_the_text(writer, settings):
    pieces = list(writer.stream("Once upon", max_tokens=20, **settings))
    assert "".join(pieces) == writer.generate("Once upon", max_tokens=20, **settings)
    assert len(pieces) > 1


@pytest.mark.parametrize("settings", [{"beams": 3}, {"temperature": 1.0, "best": 2, "seed": 3}])
def test_a_stream_of_several_candidates_is_the_best_one(writer, settings):
    pieces = list(writer.stream("Once upon", max_tokens=8, **settings))
    assert pieces == [writer.continuations(["Once upon"], max_tokens=8, **settings)[0][0].text]


def test_a_stop_ends_the_text_before_it(writer):
    whole = writer.generate("Once upon", **SETTINGS)
    stop = whole[5:7]
    place = whole.index(stop)
    (result,) = writer.continuations(["Once upon"], **SETTINGS, stop=[stop])[0]
    assert (result.text, result.finish_reason) == (whole[:place], "stop")
    assert len(result.ids) == place + 2
    assert "".join(writer.stream("Once upon", **SETTINGS, stop=stop)) == whole[:place]


def test_a_stop_ends_beams_too(writer):
    whole = writer.generate("Once upon", max_tokens=12, beams=3)
    result = writer.continuations(["Once upon"], max_tokens=12, beams=3, stop=whole[4:6])[0]
    assert all(whole[4:6] not in one.text for one in result)


def test_banned_words_never_come(writer):
    whole = writer.generate("Once upon", **SETTINGS)
    banned = [whole[3], whole[6:8]]
    other = writer.generate("Once upon", **SETTINGS, banned=banned)
    assert other[:3] == whole[:3]
    assert not any(word in other for word in banned)


@pytest.mark.parametrize("settings", [{"sample": True, "seed": 0}, {}, {"beams": 3}])
def test_forced_words_come(writer, settings):
    result = writer.generate(["Once upon", "a"], max_tokens=14, forced=["abc", "xyz"], **settings)
    assert all("abc" in text and "xyz" in text for text in result)


def test_forced_words_come_before_the_end(writer):
    """Where the end would be the likeliest at once."""
    ends = writer.writer.special.eos
    first = lambda row, ids: ends if not ids else None  # noqa: E731
    (result,) = writer.continuations(["Once"], max_tokens=14, constraint=first)[0]
    assert len(result.ids) == 1
    (result,) = writer.continuations(["Once"], max_tokens=14, constraint=first, forced="abc")[0]
    assert result.text.startswith("abc")


def test_a_constraint_of_ones_own(writer):
    digits = [ord(digit) - 32 for digit in "0123456789"]
    text = writer.generate("Once upon", max_tokens=12, constraint=lambda row, ids: digits)
    assert text.isdigit()
    assert writer.generate("Once upon", max_tokens=12, beams=2, constraint=lambda row, ids: digits).isdigit()


def test_a_context_that_is_full_ends_or_slides(writer):
    prompt = "a" * 120
    (result,) = writer.continuations([prompt], max_tokens=40)[0]
    assert (len(result.ids), result.finish_reason) == (8, "full")
    (slid,) = writer.continuations([prompt], max_tokens=40, slide=True)[0]
    assert (len(slid.ids), slid.finish_reason) == (40, "length")
    assert slid.ids[:8] == result.ids
    both = writer.generate_ids([[5] * 120, [6, 7]], max_tokens=30, slide=True)
    assert both == [writer.generate_ids([row], max_tokens=30, slide=True)[0] for row in ([5] * 120, [6, 7])]


def test_a_prompt_that_is_too_long_is_refused_unless_it_slides(writer):
    with pytest.raises(InputError, match=r"prompt 1 has 128 tokens.*at most 127.*slide=True"):
        writer.generate(["a", "b" * 128])
    with pytest.raises(InputError, match="200 tokens"):
        writer.generate("b" * 200)
    assert len(writer.generate("b" * 200, slide=True, max_tokens=40)) == 40


def test_an_encoder_decoder_writes_from_its_start_token(translator):
    (result,) = translator.continuations(["Good morning."], max_tokens=9, beams=4)[0]
    assert translator.generate("Good morning.", max_tokens=9, beams=4) == result.text
    assert translator.generate_ids([[39, 79]], max_tokens=4)[0]


@pytest.mark.parametrize(
    ("name", "instead"), [("tiny-bert", "model.embed"), ("tiny-roberta", "model.embed"), ("tiny-distilbert", "gpt2")]
)
def test_a_model_that_only_reads_says_what_it_can_do(name, instead):
    with pytest.raises(InputError, match="is encoder-only and cannot generate") as error:
        regard.create(name).generate_ids([[1]])
    assert instead in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.generate(""), "prompt 0 is empty"),
        (lambda model: model.generate(["a", "  "]), "empty"),
        (lambda model: model.generate([]), "empty"),
        (lambda model: model.continuations(["ab", [1, 2]]), "text 1 is of type list, but a string was expected"),
        (lambda model: model.continuations("ab"), "a list of texts was expected, but one str was given"),
        (lambda model: model.generate_ids([[]]), "sequence 0 is empty"),
        (lambda model: model.generate_ids([[100]]), "outside the vocabulary"),
        (lambda model: model.generate_ids([[1]], beam=2), 'Did you mean "beams"'),
        (lambda model: model.generate_ids([[1]], beams=0), "at least 1, not 0"),
        (lambda model: model.generate_ids([[1]], sample=True, seed=[1, 2]), "1 prompt but 2 seeds"),
        (lambda model: model.generate_ids([[1]], banned=[[100]]), "no run of ids"),
        (lambda model: model.generate_ids([[1]], banned=[[7]], forced=[[6, 7]]), r"forced \[6, 7\] holds the banned"),
        (lambda model: model.generate_ids([[1]], max_tokens=2, forced=[[6, 7, 8]]), "forced and max_tokens=2"),
    ],
)
def test_bad_input_is_named(writer, call, message):
    with pytest.raises(InputError, match=message):
        call(writer)


def test_without_a_tokenizer_only_ids():
    plain = regard.create("tiny-gpt2")
    assert len(plain.generate_ids([[1, 2]], max_tokens=3)[0]) == 3
    for call in (lambda: plain.generate("a"), lambda: list(plain.stream("a"))):
        with pytest.raises(InputError, match="no tokenizer"):
            call()
    with pytest.raises(InputError, match="stop contains text, but this model has no tokenizer"):
        plain.generate_ids([[1]], stop="a")


def test_what_the_folder_says_of_decoding_is_followed(lettered, tmp_path):
    folder = lettered("tiny-bart").save(tmp_path / "model")
    message = {
        "eos_token_id": [7, 8],
        "num_beams": 3,
        "bad_words_ids": [[9]],
        "max_length": 20,
        "forced_bos_token_id": 4,
    }
    (folder / "generation_config.json").write_text(json.dumps(message), encoding="utf-8")
    read = regard.load(folder)
    assert (read.writer.special.eos, read.writer.special.forced_first) == ((7, 8), 4)
    assert read.writer.defaults == {"beams": 3, "banned": [[9]], "max_tokens": 19}
    result = read.generate_ids([[5, 6]])[0]
    assert result[0] == 4
    assert len(result) <= 19
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": "x"}), encoding="utf-8")
    with pytest.raises(FolderError, match="eos_token_id"):
        regard.load(folder).generate_ids([[5]])


def test_a_preset_with_words_of_its_own_ends_with_their_end_token(lettered, tmp_path):
    made = lettered("tiny-marian")
    made.checkpoint = dataclasses.replace(made.checkpoint, special_ids={"eos": 11, "pad": 12})
    ends = regard.load(made.save(tmp_path / "model")).writer.special
    assert (ends.eos, ends.decoder_start, ends.forced_last) == ((11,), 12, 11)
