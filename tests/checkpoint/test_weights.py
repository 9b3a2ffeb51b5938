"""Weights are read from safetensors alone, mapped, and only when every name and header is right."""

from __future__ import annotations

import ast
import json
import re
import resource
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import regard
from regard.checkpoint import weights
from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.checkpoint.weights import INDEX, SINGLE, stored_tensors, weight_files, write_weights
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError

TENSORS = {"a": torch.randn(4, 3), "b": torch.randn(5), "c": torch.randn(2, 2), "d": torch.tensor(1.5)}


def write(folder: Path, *, shard_bytes: int = 10**9) -> Path:
    folder.mkdir(exist_ok=True)
    write_weights(folder, TENSORS, shard_bytes=shard_bytes)
    return folder


def read(folder: Path) -> dict[str, Tensor]:
    return {name: stored.read({}) for name, stored in stored_tensors(folder).items()}


def point(folder: Path, tensor: str, file: str) -> None:
    """Let the index name another file for a tensor."""
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"][tensor] = file
    (folder / INDEX).write_text(json.dumps(index))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return write(tmp_path / "model", shard_bytes=20)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    write_folder(tmp_path / "bert", from_preset("tiny-bert", dtype=torch.float32))
    return tmp_path / "bert"


# one file, or many


@pytest.mark.parametrize(("shard_bytes", "files"), [(1, 4), (20, 3), (50, 2), (10**9, 1)])
def test_shards_hold_what_one_file_holds(tmp_path: Path, shard_bytes: int, files: int) -> None:
    folder = write(tmp_path / "model", shard_bytes=shard_bytes)
    result = read(folder)
    assert {name: tensor.tolist() for name, tensor in result.items()} == {n: t.tolist() for n, t in TENSORS.items()}
    assert len(weight_files(folder)) == files
    assert (folder / INDEX).exists() == (files > 1)
    assert all(file.stat().st_size < max(shard_bytes, 48) + 400 for file in weight_files(folder))


def test_the_index_is_as_others_write_it(shards: Path) -> None:
    index = json.loads((shards / INDEX).read_text())
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in TENSORS.values())
    for name, file in index["weight_map"].items():
        assert re.fullmatch(r"model-0000\d-of-00003\.safetensors", file)
        assert name in load_file(shards / file)


def test_a_sharded_model_is_the_same_model(tmp_path: Path, bert: Path) -> None:
    write_folder(tmp_path / "parts", read_folder(bert), shard_bytes=10_000)
    assert len(weight_files(tmp_path / "parts")) > 3
    one, other = read_folder(bert).network.state_dict(), read_folder(tmp_path / "parts").network.state_dict()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


# names that lie


@pytest.mark.parametrize("name", ["../outside.safetensors", "/outside.safetensors", "out.safetensors", "out/x", ""])
def test_an_index_that_leads_out_is_refused_before_any_file_is_opened(
    shards: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    save_file(TENSORS, shards.parent / "outside.safetensors")
    (shards / "out.safetensors").symlink_to(shards.parent / "outside.safetensors")
    (shards / "out").symlink_to(shards.parent)
    name = name.replace("/outside", f"{shards.parent}/outside") if name.startswith("/") else name
    point(shards, "a", name)
    opened: list[Path] = []
    monkeypatch.setattr(weights, "safe_open", lambda file, **_: opened.append(file))
    with pytest.raises(FolderError, match=r"leads out of the folder|is a link out of the folder"):
        stored_tensors(shards)
    assert opened == []


def test_a_single_file_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "outside.safetensors")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / SINGLE).symlink_to(tmp_path / "outside.safetensors")
    with pytest.raises(FolderError, match="is a link out of the folder"):
        stored_tensors(tmp_path / "model")


def test_an_index_that_names_an_absent_file(shards: Path) -> None:
    point(shards, "a", "model-00009-of-00009.safetensors")
    with pytest.raises(FolderError, match=r"model has no model-00009-of-00009\.safetensors, which its index names"):
        stored_tensors(shards)


@pytest.mark.parametrize("tensor", ["a", "never_stored"])
def test_an_index_that_lies_about_a_tensor(shards: Path, tensor: str) -> None:
    point(shards, tensor, "model-00003-of-00003.safetensors")
    with pytest.raises(FolderError, match=f"names tensors that are not there:\n  {tensor} in model-00003-of-00003"):
        stored_tensors(shards)


def test_a_tensor_in_two_shards_is_refused(shards: Path) -> None:
    save_file({"c": torch.zeros(2, 2), "d": torch.zeros(())}, shards / "model-00003-of-00003.safetensors")
    save_file({"b": torch.zeros(5), "c": torch.zeros(2, 2)}, shards / "model-00002-of-00003.safetensors")
    with pytest.raises(FolderError, match=r"model-00002-of-00003.* and model-00003-of-00003.* both hold the tensor c"):
        stored_tensors(shards)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {}}'])
def test_an_index_without_a_map(shards: Path, content: str) -> None:
    (shards / INDEX).write_text(content)
    with pytest.raises(FolderError, match='has no "weight_map" from tensor names to file names'):
        stored_tensors(shards)


# headers that lie


def raw(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    message = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(message) if length is None else length) + message + data


def entry(start: int, end: int, shape: list[int], dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


BROKEN = {
    "empty": b"",
    "shorter than a length": b"\x01\x02",
    "header longer than the file": raw({}, length=10**6),
    "header of absurd length": raw({}, length=2**63),
    "garbage header": raw(b"\xff" * 40),
    "not an object": raw([1, 2]),
    "overlapping offsets": raw({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, bytes(12)),
    "offsets out of range": raw({"a": entry(0, 800, [200])}, bytes(8)),
    "offsets the wrong way": raw({"a": entry(8, 0, [2])}, bytes(8)),
    "shape that is not so many bytes": raw({"a": entry(0, 8, [3])}, bytes(8)),
    "shape that overflows": raw({"a": entry(0, 8, [2**62, 2**62])}, bytes(8)),
    "unknown numbers": raw({"a": entry(0, 8, [2], "Q99")}, bytes(8)),
    "bytes nobody owns": raw({"a": entry(0, 8, [2])}, bytes(80)),
    "a pickle by another name": b"\x80\x04\x95" + bytes(60),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_header_is_reported(tmp_path: Path, kind: str) -> None:
    (tmp_path / SINGLE).write_bytes(BROKEN[kind])
    with pytest.raises(FolderError, match=r"model\.safetensors is damaged or cut short: .* Copy or download it again"):
        stored_tensors(tmp_path)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_a_truncated_file_is_reported_and_nothing_is_loaded(bert: Path, share: float) -> None:
    whole = (bert / SINGLE).read_bytes()
    (bert / SINGLE).write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FolderError, match="is damaged or cut short"):
        read_folder(bert)


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / SINGLE).mkdir()
    with pytest.raises(FolderError, match="is not a regular file"):
        stored_tensors(tmp_path)


# numbers that are none


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_that_are_no_numbers_are_named(bert: Path, dtype: torch.dtype, value: str) -> None:
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(bert / SINGLE).items()}
    tensors["encoder.layer.1.attention.self.key.weight"][3, 5] = float(value)
    tensors["pooler.dense.bias"][-1] = float(value)
    save_file(tensors, bert / SINGLE)
    with pytest.raises(FolderError) as caught:
        read_folder(bert)
    lines = str(caught.value).splitlines()
    assert "hold NaN or infinity" in lines[0]
    assert lines[1:3] == ["  encoder.layer.1.attention.self.key.weight", "  pooler.dense.bias"]
    assert "earlier checkpoint" in lines[3]


def test_numbers_too_large_for_the_chosen_format_are_reported(bert: Path) -> None:
    tensors = load_file(bert / SINGLE)
    tensors["pooler.dense.bias"][-1] = 1e6
    save_file(tensors, bert / SINGLE)
    assert read_folder(bert, dtype=torch.bfloat16).network.get_parameter("heads.pooled.transform.dense.bias")[-1] > 9e5
    with pytest.raises(FolderError, match=r"too large for fp16; use bf16:\n  heads\.pooled\.transform\.dense\.bias"):
        read_folder(bert, dtype=torch.float16)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_weights_that_are_quantized_are_not_taken_for_numbers(bert: Path, dtype: torch.dtype) -> None:
    tensors = load_file(bert / SINGLE)
    tensors["pooler.dense.weight"] = tensors["pooler.dense.weight"].to(dtype)
    save_file(tensors, bert / SINGLE)
    with pytest.raises(FolderError, match=r"pooler\.dense\.weight: \w+, expected one of F32, BF16, F16, F64"):
        read_folder(bert)


# pickles, and nothing


def test_pickled_weights_are_refused_with_a_command_that_converts_them(bert: Path) -> None:
    tensors = load_file(bert / SINGLE)
    (bert / SINGLE).unlink()
    torch.save(tensors, bert / "pytorch_model.bin")
    torch.save({}, bert / "training_args.bin")
    with pytest.raises(FolderError, match=r"only as pytorch_model\.bin, a pickle") as caught:
        read_folder(bert)
    command = re.search(r'python -c "(.*)"$', str(caught.value))
    assert command is not None
    assert "BertModel" in command[1]
    exec(command[1])  # as the reader would
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in load_file(bert / SINGLE).items())
    read_folder(bert)


def test_nothing_at_all(bert: Path) -> None:
    (bert / SINGLE).unlink()
    torch.save({}, bert / "optimizer.pt")
    with pytest.raises(FolderError, match=r"bert has no model\.safetensors and no model\.safetensors\.index\.json"):
        read_folder(bert)


def test_no_pickle_is_ever_opened() -> None:
    """No module imports a reader of pickles or calls one."""
    for file in Path(regard.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute):
                names = [f"{ast.unparse(node.value)}.{node.attr}"]
            for name in names:
                assert name not in ("torch.load", "torch.jit.load", "torch.hub.load", "torch.package"), file
                assert name.split(".")[0] not in ("pickle", "dill", "cloudpickle", "joblib", "shelve"), file


# memory


def test_weights_are_mapped_from_the_file_and_never_written_to_it(bert: Path) -> None:
    """An unfused tensor lies in the file's mapping: nothing is copied when it is loaded. The file stays as it is."""
    before = (bert / SINGLE).read_bytes()
    tensor = read_folder(bert).network.get_parameter("encoder.embeddings.tokens.weight")
    address, mapped = tensor.data_ptr(), []
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *_, path = line.split(maxsplit=5)
        start, end = (int(edge, 16) for edge in span.split("-"))
        if start <= address < end:
            mapped.append(path)
    assert mapped == [str(bert / SINGLE)]
    with torch.no_grad():
        tensor.fill_(7.0)
    assert (bert / SINGLE).read_bytes() == before


def test_a_loaded_model_may_be_saved_over_its_own_folder(bert: Path) -> None:
    checkpoint = read_folder(bert)
    expected = {name: tensor.clone() for name, tensor in checkpoint.network.state_dict().items()}
    write_folder(bert, checkpoint, overwrite=True)
    for made in (checkpoint, read_folder(bert)):
        assert all(torch.equal(tensor, expected[name]) for name, tensor in made.network.state_dict().items())


# a full disk


def test_a_disk_that_is_full_leaves_the_old_model(tmp_path: Path, bert: Path) -> None:
    """A limit on the size of files stands for the full disk; the error comes from the system itself."""
    checkpoint, before = read_folder(bert), (bert / SINGLE).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(FolderError, match=r"could not be written: .*File too large.*Nothing was changed"):
            write_folder(bert, checkpoint, overwrite=True)
        with pytest.raises(FolderError, match="Nothing was changed"):
            write_folder(tmp_path / "new", checkpoint)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (bert / SINGLE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["bert"]
