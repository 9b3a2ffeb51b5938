"""What the machine is asked, and that the report says what the network does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard import device
from regard.errors import InputError
from regard.model.kernels import dispatch as kernels
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.layout import Layout


def test_devices_by_name() -> None:
    assert device.pick_device("cpu") == torch.device("cpu")
    assert device.pick_device().type in ("cpu", "cuda")
    with pytest.raises(InputError, match='device "tpu9" is not known'):
        device.pick_device("tpu9")


def test_the_environment_decides_what_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("REGARD_DEVICE", "cpu")
    assert device.pick_device() == torch.device("cpu")
    assert device.pick_device("cuda") == torch.device("cuda")
    monkeypatch.setenv("REGARD_DEVICE", "")
    assert device.pick_device() == torch.device("cuda")
    monkeypatch.setenv("REGARD_DEVICE", "gpu7")
    with pytest.raises(InputError, match='device "gpu7"'):
        device.pick_device()


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.pick_device() == torch.device("cpu")
    with pytest.raises(InputError, match="no usable GPU"):
        device.pick_device("cuda")


def test_number_formats_by_name() -> None:
    assert device.pick_dtype("bf16") == device.pick_dtype(torch.bfloat16) == torch.bfloat16
    with pytest.raises(InputError, match='dtype "int3" is not known'):
        device.pick_dtype("int3")


@pytest.mark.parametrize("options", ["has_flash", "has_cudnn", "has_triton"])
def test_the_compiler_sees_through_what_a_kernel_is_chosen_by(monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    """A break here would fall into every layer of a network."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index=0: (9, 0))
    monkeypatch.setattr(device, "_CUDNN", True)
    monkeypatch.setattr(device, "_TRITON", True)

    def chosen(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if getattr(device, options)() else x

    torch._dynamo.reset()
    assert torch.compile(chosen, backend="eager", fullgraph=True)(torch.zeros(())) == 1
    torch._dynamo.reset()


def test_the_report_of_this_machine() -> None:
    result = device.device_report()
    assert result.torch == torch.__version__
    assert result.cores >= 1
    assert result.threads == torch.get_num_threads()
    assert len(result.gpus) == torch.cuda.device_count()
    assert set(result.extras) == set(device.EXTRAS)


@pytest.mark.parametrize(("flash", "triton"), [(True, True), (True, False), (False, True)])
def test_reported_kernels_are_the_ones_used(monkeypatch: pytest.MonkeyPatch, flash: bool, triton: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for size in (device, kernels):
        monkeypatch.setattr(size, "has_flash", lambda index=0: flash)
        monkeypatch.setattr(size, "has_triton", lambda: triton)
        monkeypatch.setattr(size, "has_cudnn", lambda index=0: flash)

    def used(where: str, dtype: torch.dtype, ends: tuple[int, ...] = (5, 7), **call: Any) -> str:
        queries: Any = SimpleNamespace(device=torch.device(where), dtype=dtype, shape=(ends[-1], 12, 64))
        return kernels.pick_kernel(
            queries, AttentionCall(Layout.for_self_attention(torch.tensor([0, *ends]), 5), **call)
        )

    message = device._kernels()
    assert message["cpu"] == used("cpu", torch.float32) == used("cpu", torch.bfloat16)
    assert message["cuda, bf16 or fp16"] == used("cuda", torch.bfloat16) == used("cuda", torch.float16)
    if flash:
        even = message["cuda, bf16 or fp16, in training on equal lengths"]
        assert even == used("cuda", torch.bfloat16, (5, 10))
    with torch.no_grad():
        assert message["cuda, bf16 or fp16, without gradients"] == used("cuda", torch.bfloat16)
        assert message["cuda, fp32, without gradients"] == used("cuda", torch.float32)
        assert used("cuda", torch.bfloat16, dropout=0.1, training=True) == message["cuda, bf16 or fp16"] or not flash
    bias = torch.zeros(12, 13)
    assert message["cuda, fp32, or with a bias or a mask function"] == used("cuda", torch.float32)
    assert message["cuda, fp32, or with a bias or a mask function"] == used("cuda", torch.bfloat16, bias_HR=bias)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HF_HUB_CACHE": "/a"}, "/a"),
        ({"HF_HOME": "/b"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HOME": "/d"}, "/d/.cache/huggingface/hub"),
    ],
)
def test_the_cache_of_the_hub(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Path(device.device_report().hub_cache) == Path(expected)


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_offline(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert device.device_report().offline is expected


def test_an_absent_extra_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "EXTRAS", {"serve": ("no_such_package",), "hub": ("json",)})
    assert device.device_report().extras == {"serve": 'pip install "regard[serve]"', "hub": None}


@pytest.mark.parametrize(
    ("line", "features", "support"),
    [
        ("Features\t: fp asimd asimdhp asimddp", ("dotprod",), "full"),
        ("Features\t: fp asimd asimddp i8mm", ("dotprod", "i8mm"), "full"),
        ("flags\t\t: sse2 avx2 avx512_vnni", ("avx2", "vnni"), "full"),
        ("flags\t\t: sse2 avx2", ("avx2",), "reduced"),
        ("flags\t\t: sse2", (), "none"),
        ("processor\t: 0", (), "none"),
    ],
)
def test_instructions_for_8_bit_integers(
    line: str, features: tuple[str, ...], support: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{line}\n\nprocessor\t: 1\n{line}\n")
    monkeypatch.setattr(device, "CPU_INFO", file)
    assert device.cpu_features() == features
    assert device.int8_support() == support
    report = device.device_report()
    assert (report.cpu_features, report.int8) == (features, support)


def test_a_system_without_cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "CPU_INFO", tmp_path / "none")
    assert device.cpu_features() == ()
