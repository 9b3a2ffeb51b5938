"""`regard doctor`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard._version import __version__
from regard.cli.arguments import Json
from regard.cli.command import Command
from regard.cli.output import format_bytes, print_json, print_table
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.device import DeviceReport
    from regard.export.engine_times import EngineTimes

HELP = """Show the hardware and software of this machine, and which of it regard uses.

Examples:
  regard doctor
  regard doctor --json"""


KERNELS = {
    "grouped": "texts of equal length together",
    "packed": "short texts together in tiles",
    "varlen": "FlashAttention",
    "dense": "cuDNN attention",
    "tiles": "Triton kernel",
    "flex": "FlexAttention",
}
INT8 = {
    "full": "fast on this CPU: --engine int8",
    "reduced": "with 7-bit activations: this CPU has no VNNI, and 8-bit products would overflow",
    "none": "not on this CPU: --engine int8 computes in fp32",
}


@dataclass(frozen=True)
class DoctorCommand:
    json: Json = False


def run(command: DoctorCommand) -> None:
    from regard.device import device_report
    from regard.export.engine_times import all_engine_times

    report = device_report()
    measured = all_engine_times()
    if command.json:
        engines = [{**dataclasses.asdict(times), "fastest": times.fastest} for times in measured]
        print_json({"regard": __version__, **dataclasses.asdict(report), "engines": engines})
    else:
        print_table(_table_rows(report) + _engine_rows(measured))


def _engine_rows(measured: Sequence[EngineTimes]) -> list[tuple[str, str]]:
    """The latest measurement of each shape of network and number of threads."""
    latest: dict[tuple[str, int], EngineTimes] = {}
    for times in measured:
        latest.setdefault((times.shape, times.threads), times)
    return [_engine_row(times) for times in latest.values()]


def _engine_row(times: EngineTimes) -> tuple[str, str]:
    milliseconds = ", ".join(f"{name} {value:.1f} ms" for name, value in times.ms.items())
    threads = pluralize(times.threads, "thread")
    return "measured engines", f"{times.shape}, {threads}: {milliseconds}; used: {times.fastest}"


def _table_rows(report: DeviceReport) -> list[tuple[str, str]]:
    memory = "unknown" if report.memory is None else format_bytes(report.memory)
    rows = [
        ("regard", f"{__version__} (Python {report.python}, torch {report.torch}, {report.system})"),
        ("device", f"{report.device}, by --device auto"),
        ("cpu", f"{pluralize(report.cores, 'core')}, {pluralize(report.threads, 'thread')} used; memory {memory}"),
    ]
    for number, gpu in enumerate(report.gpus):
        formats = "bf16, fp16, fp32" if gpu.bf16 else "fp16, fp32"
        rows.append(
            (f"cuda:{number}", f"{gpu.name}, {format_bytes(gpu.memory)}, capability {gpu.capability}, {formats}")
        )
    if not report.gpus:
        rows.append(("gpu", "none available to torch"))
    rows += [(f"attention on {where}", f"{kernel} ({KERNELS[kernel]})") for where, kernel in report.kernels.items()]
    features = ", ".join(report.cpu_features) or "no instructions for 8-bit integers"
    rows.append(("int8", f"{INT8[report.int8]} ({features})"))
    if report.compiler:
        rows.append(("torch.compile", f"available (compiler {report.compiler})"))
    else:
        rows.append(("torch.compile", "not on the CPU: no C++ compiler found; install g++ or clang++"))
    rows += [(f"extra {name}", "installed" if command is None else command) for name, command in report.extras.items()]
    rows.append(
        (
            "hub",
            f"{'offline (HF_HUB_OFFLINE)' if report.offline else 'online, used for hub ids only'}; {report.hub_cache}",
        )
    )
    return rows


COMMAND = Command(name="doctor", arguments=DoctorCommand, help=HELP, run=run)
