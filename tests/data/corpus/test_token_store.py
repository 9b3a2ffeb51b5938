"""A token store holds every document as the tokenizer cuts it, survives a kill, and is refused when it is stale."""

from __future__ import annotations

import gzip
import lzma
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import fork_server
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from regard.data.corpus import documents
from regard.data.corpus.token_store import Corpus
from regard.errors import FolderError, InputError
from regard.progress import Progress
from regard.text.tokenizer import Tokenizer

WORDS = ["[UNK]", "the", "man", "went", "home", "It", "was", "cold", ".", "Dr", "[END]", "He", "slept"]


def word_level(words: list[str] = WORDS) -> Tokenizer:
    backend = Backend(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return Tokenizer(backend)


TEXT = "the man went home. It was cold.\nHe slept\n\n\n  \nDr. the man slept.\n\nHe went."
DOCUMENTS = ["the man went home. It was cold.\nHe slept", "Dr. the man slept.", "He went."]


def write(path: Path, text: str) -> Path:
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        stream.write(text)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz"])
@pytest.mark.parametrize(
    "change", [str, lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n") + "\r\n\r\n"]
)
def test_documents_and_sentences_come_back(tmp_path: Path, name: str, change: Callable[[str], str]) -> None:
    path = write(tmp_path / name, change(TEXT))
    tokenizer = word_level()
    recorded: list[Progress] = []
    corpus = Corpus.build([path], tokenizer, tmp_path / "store", sentences=True, progress=recorded.append)
    assert len(corpus) == 3
    assert corpus.tokens.dtype == np.uint16
    assert [corpus[i].tolist() for i in range(3)] == [list(tokenizer.encode(text).ids) for text in DOCUMENTS]
    messages = [[tokenizer.decode(part.tolist()) for part in corpus.sentences(i)] for i in range(3)]
    assert messages == [
        ["the man went home .", "It was cold .", "He slept"],
        ["Dr . the man slept ."],
        ["He went ."],
    ]
    assert (corpus[-1] == corpus[2]).all()
    assert corpus.lengths.sum() == len(corpus.tokens)
    assert (recorded[-1].done, recorded[-1].values["documents"]) == (path.stat().st_size, 3)
    with pytest.raises(IndexError, match="the store has 3"):
        corpus[3]


def test_an_end_token_and_large_vocabularies(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", TEXT)
    corpus = Corpus.build([path, path], word_level(), tmp_path / "store", end=10)
    assert len(corpus) == 6
    assert [int(document[-1]) for document in map(corpus.__getitem__, range(6))] == [10] * 6
    with pytest.raises(InputError, match="without sentence bounds"):
        corpus.sentences(0)
    large = word_level(WORDS + [f"w{i}" for i in range(70_000)])
    path = write(tmp_path / "b.txt", "w69999 home")
    assert Corpus.build([path], large, tmp_path / "large")[0].tolist() == [69_999 + len(WORDS), 4]


BUILD = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_token_store import word_level
from regard.data.corpus import documents
from regard.data.corpus.token_store import Corpus
documents.GROUP = 2000
def slow(progress):
    print(progress.values["tokens"], flush=True)
    time.sleep(0.01)
Corpus.build([Path(sys.argv[2])], word_level(), sys.argv[3], sentences=True, progress=slow, save_every=500)
"""


@pytest.mark.parametrize("name", ["a.txt", "a.txt.xz"])
def test_a_build_that_was_killed_goes_on_to_the_same_store(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    text = "\n\n".join(" ".join(rng.choice(WORDS[1:], rng.integers(1, 80))) for _ in range(1000))
    path, store = write(tmp_path / name, text), tmp_path / "store"
    with fork_server.start("-c", BUILD, Path(__file__).parent, path, store) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 10_000:
            pass
        os.kill(process.pid, signal.SIGKILL)
    assert not store.exists()
    with pytest.raises(FolderError, match="continues where it stopped"):
        Corpus.open(store)
    recorded: list[Progress] = []
    corpus = Corpus.build([path], word_level(), store, sentences=True, progress=recorded.append)
    whole = Corpus.build([path], word_level(), tmp_path / "whole", sentences=True)
    for file in ("tokens.bin", "documents.bin", "sentences.bin", "owners.bin"):
        assert (store / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert len(corpus) == len(whole) == 1000
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([name, "store", "whole"])


def test_a_second_build_at_the_same_time_names_the_first(tmp_path: Path) -> None:
    path, store = write(tmp_path / "a.txt", "the man went home.\n\n" * 50_000), tmp_path / "deep" / "store"
    with fork_server.start("-c", BUILD, Path(__file__).parent, path, store) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for overwrite in (False, True):
            with pytest.raises(FolderError, match=f"store is being built by process {process.pid} on .*Wait"):
                Corpus.build([path], word_level(), store, sentences=True, overwrite=overwrite)
        assert process.poll() is None, "the first goes on"
        os.kill(process.pid, signal.SIGKILL)
    assert [item.name for item in (tmp_path / "deep").iterdir() if item.name.endswith(".lock")] == [".store.lock"]
    assert len(Corpus.build([path], word_level(), store, sentences=True)) == 50_000
    assert [item.name for item in (tmp_path / "deep").iterdir()] == ["store"]


def test_one_of_many_builds_at_once_makes_the_store(tmp_path: Path) -> None:
    """Threads as processes: each opens the lock for itself."""
    path, store = write(tmp_path / "a.txt", TEXT), tmp_path / "store"

    def build(_: int) -> int | FolderError:
        try:
            return len(Corpus.build([path], word_level(), store))
        except FolderError as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        messages = list(pool.map(build, range(40)))
    assert {one for one in messages if isinstance(one, int)} == {3}
    assert all("is being built by process" in str(one) for one in messages if not isinstance(one, int))
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.txt", "store"]


def test_only_what_was_not_safe_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "GROUP", 100)
    path, store = write(tmp_path / "a.txt", "the man went home.\n\n" * 500), tmp_path / "store"

    def stop(progress: Progress) -> None:
        if progress.values["documents"] > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Corpus.build([path], word_level(), store, progress=stop, save_every=50)
    recorded: list[Progress] = []
    Corpus.build([path], word_level(), store, progress=recorded.append)
    assert 280 < recorded[0].values["documents"] < 320
    assert recorded[-1].values["documents"] == 500


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    store, good = tmp_path / "store", write(tmp_path / "good.txt", TEXT)
    (tmp_path / "bad.txt").write_bytes(b"good\n\nb\xffd\n")
    (tmp_path / "cut.txt.xz").write_bytes(lzma.compress(os.urandom(5000).hex().encode())[:3000])
    (tmp_path / "no.txt.gz").write_bytes(b"no gzip at all")
    (tmp_path / "bent.txt.gz").write_bytes(gzip.compress(TEXT.encode())[:10] + b"\xff" * 20)
    write(tmp_path / "empty.txt", " \n\n")
    for name, message in (
        ("bad.txt", "byte 7 is 0xff"),
        ("cut.txt.xz", "damaged or cut short"),
        ("no.txt.gz", "damaged or cut short"),
        ("bent.txt.gz", "damaged or cut short"),
        ("empty.txt", "there is no text"),
        ("none.txt", "is not a file"),
    ):
        with pytest.raises(InputError, match=message):
            Corpus.build([tmp_path / name], word_level(), store, overwrite=True)
    no_unknown = word_level(["the"])
    with pytest.raises(InputError, match="not in the vocabulary, and the vocabulary has no unknown token"):
        Corpus.build([good], no_unknown, store, overwrite=True)
    with pytest.raises(InputError, match="list of files"):
        Corpus.build(str(good), word_level(), store)
    with pytest.raises(InputError, match="not in the tokenizer's vocabulary"):
        Corpus.build([good], word_level(), store, end=99)
    with pytest.raises(FolderError, match="is no token store"):
        Corpus.build([good], word_level(), tmp_path, overwrite=True)
    with pytest.raises(FolderError, match="holds no token store"):
        Corpus.open(tmp_path)

    def grow(_: Progress) -> None:
        with good.open("a") as stream:
            stream.write("more")

    with pytest.raises(InputError, match="changed while it was read"):
        Corpus.build([good], word_level(), store, progress=grow, overwrite=True)
