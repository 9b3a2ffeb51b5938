"""Framed texts are what the tokenizer itself gives; windows over them show every token and own it once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from regard.data.batching.framing import (
    Frame,
    FramedSequence,
    SpecialTokens,
    context_windows,
    pair_windows,
    single_windows,
)
from regard.data.batching.sequences import split_into_windows
from regard.data.batching.windows import Window, paired_windows, windows
from regard.errors import InputError
from regard.text.tokenizer import Tokenizer

WORDS = ["[UNK]", "[CLS]", "[SEP]", "<s>", "</s>", "the", "man", "went", "höme", "東", ".", "a"]
ID = {word: number for number, word in enumerate(WORDS)}
PROCESSORS = {
    "bert": processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
    "roberta": processors.RobertaProcessing(("</s>", 4), ("<s>", 3)),
    "t5": processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 4)]),
    "xlnet": processors.TemplateProcessing(
        "$A [SEP] [CLS]:2", "$A [SEP] $B:1 [SEP]:1 [CLS]:2", [("[SEP]", 2), ("[CLS]", 1)]
    ),
    "none": None,
}


def tokenizer(kind: str) -> Tokenizer:
    backend = Backend(models.WordLevel(ID, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if PROCESSORS[kind] is not None:
        backend.post_processor = PROCESSORS[kind]
    return Tokenizer(backend)


BERT = Frame.of(tokenizer("bert"))
TEXT = st.lists(st.sampled_from(["the", "man", "went", "höme", "東", ".", "zzz", "😀"]), max_size=40).map(" ".join)


def test_the_frames_of_bert_and_roberta() -> None:
    assert (
        Frame(
            (SpecialTokens((1,), (0,)), SpecialTokens((2,), (0,))),
            SpecialTokens((1,), (0,)),
            SpecialTokens((2,), (0,)),
            SpecialTokens((2,), (1,)),
            0,
            (0, 1),
        )
        == BERT
    )
    assert (BERT.special_count, BERT.pair_special_count) == (2, 3)
    result = BERT.pair([7, 8], [9])
    assert result.ids == [1, 7, 8, 2, 9, 2]
    assert result.segments == [0, 0, 0, 0, 1, 1]
    assert result.texts == [None, 0, 0, None, 1, None]
    assert result.tokens == [None, 0, 1, None, 0, None]
    assert result.own == [False, True, True, False, True, False]
    roberta = Frame.of(tokenizer("roberta"))
    assert roberta.pair([7, 8], [9]).ids == [3, 7, 8, 4, 4, 9, 4]
    assert set(roberta.pair([7, 8], [9]).segments) == {0}
    assert (roberta.special_count, roberta.pair_special_count) == (2, 4)
    assert roberta.single([7]).ids == [3, 7, 4]


@pytest.mark.parametrize("kind", PROCESSORS)
@settings(deadline=None)
@given(TEXT, TEXT)
def test_framed_texts_are_what_the_tokenizer_gives(kind: str, first: str, second: str) -> None:
    own = tokenizer(kind)
    frame = Frame.of(own)
    a, b = own.ids_batch([first, second], special=False)
    for framed, whole in ((frame.single(a), own.encode(first)), (frame.pair(a, b), own.encode(first, second))):
        assert framed.ids == list(whole.ids)
        assert framed.segments == list(whole.segments)
        assert framed.texts == list(whole.sequence_ids)
        assert framed.own == [not special for special in whole.special]
    assert frame.pair_special_count == len(own.encode(first, second)) - len(a) - len(b)


def check(results: list[FramedSequence], texts: tuple[range, ...], longest: int, *, full: bool = False) -> None:
    """Every window fits and holds what it says it holds; every token of every text is in one, and owned by one."""
    owned: list[tuple[int, int]] = []
    for sequence in results:
        assert len(sequence) == len(sequence.segments) == len(sequence.own) <= longest
        for place, (text, token) in enumerate(zip(sequence.texts, sequence.tokens, strict=True)):
            if text is None:
                assert token is None
                assert sequence.ids[place] < 5
                assert not sequence.own[place]
            else:
                assert token is not None
                assert sequence.ids[place] == texts[text][token]
                assert sequence.position(text, token) == place
                owned += [(text, token)] * sequence.own[place]
    assert sorted(owned) == [(text, token) for text, tokens in enumerate(texts) for token in range(len(tokens))]
    assert not full or all(len(sequence) == longest for sequence in results)


def run(text: int, length: int) -> range:
    return range(100 + 10_000 * text, 100 + 10_000 * text + length)


OVERLAP = st.floats(0, 0.9)


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(3, 40), OVERLAP)
def test_windows_over_a_text(length: int, longest: int, overlap: float) -> None:
    ids = run(0, length)
    result = single_windows(BERT, ids, max_tokens=longest, overlap=overlap)
    check(result, (ids,), longest, full=length > longest)
    assert len(result) == len(windows(length, size=longest - 2, overlap=int((longest - 2) * overlap)))
    assert all(sequence.ids[0] == 1 and sequence.ids[-1] == 2 for sequence in result)


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS[5:]), min_size=1, max_size=60).map(" ".join), st.integers(4, 20))
def test_windows_over_a_text_are_those_of_predict(text: str, longest: int) -> None:
    own = tokenizer("bert")
    result = single_windows(BERT, own.ids_batch([text], special=False)[0], max_tokens=longest)
    assert [sequence.ids for sequence in result] == [
        piece.ids for piece in split_into_windows(0, own.encode(text), longest)
    ]


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(0, 200), st.integers(1, 30), OVERLAP)
def test_every_window_over_a_context_holds_the_whole_question(
    question_length: int, context_length: int, size: int, overlap: float
) -> None:
    question, context = run(0, question_length), run(1, context_length)
    longest = question_length + 3 + size
    result = context_windows(BERT, question, context, max_tokens=longest, overlap=overlap)
    check(result, (question, context), longest, full=context_length > size)
    for sequence in result:
        assert sequence.ids[: question_length + 2] == [1, *question, 2]
        assert sequence.segments == [0] * (question_length + 2) + [1] * (len(sequence) - question_length - 2)
    shown = [sequence.parts[1].window for sequence in result]
    assert shown == windows(context_length, size=size, overlap=int(size * overlap))
    assert [any(sequence.own[1 : question_length + 1]) for sequence in result] == [question_length > 0] + [False] * (
        len(result) - 1
    )


@settings(deadline=None)
@given(st.integers(0, 120), st.integers(0, 120), st.integers(2, 40), OVERLAP)
def test_every_token_of_two_long_texts_is_in_some_window(a: int, b: int, size: int, overlap: float) -> None:
    first, second = run(0, a), run(1, b)
    result = pair_windows(BERT, first, second, max_tokens=size + 3, overlap=overlap)
    check(result, (first, second), size + 3)
    if a + b <= size:
        assert len(result) == 1
    elif min(a, b) <= size // 2:
        short, shorter = (first, 0) if a <= b else (second, 1)
        for sequence in result:
            assert [token for token, text in zip(sequence.ids, sequence.texts, strict=True) if text == shorter] == [
                *short
            ]
        assert all(len(sequence) == size + 3 for sequence in result)
    else:
        counts = [
            {(part.window.start, part.window.end) for part in parts}
            for parts in zip(*(s.parts for s in result), strict=True)
        ]
        assert len(result) == max(map(len, counts))
        assert all(len(sequence) == size + 3 for sequence in result)


def test_two_long_texts_side_by_side() -> None:
    result = paired_windows(12, 7, size=9, overlap=0)
    assert [(left.start, left.end, right.start, right.end) for left, right in result] == [
        (0, 5, 0, 4),
        (5, 10, 3, 7),
        (7, 12, 3, 7),
    ]
    assert result[2][1] == Window(3, 7, 3, 3), "shown again, not owned again"
    assert paired_windows(12, 4, size=9, overlap=0.4) == [
        (left, right if number == 0 else right.context_only)
        for number, (left, right) in enumerate(
            (window, Window(0, 4, 0, 4)) for window in windows(12, size=5, overlap=2)
        )
    ]
    assert paired_windows(3, 2, size=5, overlap=0.5) == [(Window(0, 3, 0, 3), Window(0, 2, 0, 2))]


def test_offsets_and_words_are_found_in_the_text() -> None:
    own = tokenizer("bert")
    question_text, context_text = "the höme.", "東 the man 😀 went höme. " * 6
    question, context = own.encode_batch([question_text, context_text], special=False)
    recorded = set()
    for sequence in context_windows(BERT, question.ids, context.ids, max_tokens=14, overlap=0.3):
        for place, (text, token) in enumerate(zip(sequence.texts, sequence.tokens, strict=True)):
            if text is not None and token is not None:
                start, end = (question, context)[text].offsets[token]
                word = (question_text, context_text)[text][start:end]
                assert sequence.ids[place] == ID.get(word, 0)
                recorded.add((text, start, end))
    assert len(recorded) == len(question) + len(context)


def test_no_limit_is_one_window() -> None:
    assert single_windows(BERT, run(0, 500), max_tokens=None) == [BERT.single(run(0, 500))]
    whole = [BERT.pair(run(0, 500), run(1, 500))]
    assert pair_windows(BERT, run(0, 500), run(1, 500), max_tokens=None) == whole
    assert context_windows(BERT, run(0, 500), run(1, 500), max_tokens=None) == whole


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"the question has 9 tokens: with 3 special tokens, .* window of 12 tokens\. .* more than 12"
    ):
        context_windows(BERT, run(0, 9), run(1, 1), max_tokens=12)
    assert len(context_windows(BERT, run(0, 9), run(1, 0), max_tokens=12)) == 1, "no context, nothing to show"
    with pytest.raises(
        InputError, match="windows of 2 tokens are too small for a text and 2 special tokens; use at least 3"
    ):
        single_windows(BERT, run(0, 9), max_tokens=2)
    with pytest.raises(InputError, match=r"windows of 4 tokens are too small .* use at least 5"):
        pair_windows(BERT, run(0, 9), run(1, 9), max_tokens=4)
    with pytest.raises(
        InputError, match=r"cannot share 1 of their tokens; use a fraction from 0 up to but not including 1"
    ):
        pair_windows(BERT, run(0, 9), run(1, 9), max_tokens=9, overlap=1.0)
    with pytest.raises(InputError, match="window size for two texts is 1, expected at least 2"):
        paired_windows(4, 4, size=1, overlap=0)


def test_a_frame_is_seen_with_any_vocabulary() -> None:
    backend = Backend(models.WordLevel({"[CLS]": 0, "[SEP]": 1, "β": 2}))
    backend.post_processor = processors.BertProcessing(("[SEP]", 1), ("[CLS]", 0))
    assert Frame.of(Tokenizer(backend)).pair([2], [2]).ids == [0, 2, 1, 2, 1]


def test_a_frame_with_the_texts_swapped_is_refused() -> None:
    own = tokenizer("none")
    own.backend.post_processor = processors.TemplateProcessing("$A", "$B </s> $A", [("</s>", 4)])
    with pytest.raises(InputError, match="second text before the first"):
        Frame.of(own)
