"""`regard doctor`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard._version import __version__
from regard.cli.arguments import Json
from regard.cli.command import Command
from regard.cli.output import format_bytes, print_json, print_table

if TYPE_CHECKING:
    from regard.device import DeviceReport

HELP = """Show the hardware and software of this machine, and which of it regard uses.

Examples:
  regard doctor
  regard doctor --json"""


@dataclass(frozen=True)
class DoctorCommand:
    json: Json = False


def run(command: DoctorCommand) -> None:
    from regard.device import device_report

    found = device_report()
    if command.json:
        print_json({"regard": __version__, **dataclasses.asdict(found)})
    else:
        print_table(_diagnosis(found))


def _diagnosis(found: DeviceReport) -> list[tuple[str, str]]:
    memory = "unknown" if found.memory is None else format_bytes(found.memory)
    rows = [
        ("regard", f"{__version__} (Python {found.python}, torch {found.torch}, {found.system})"),
        ("device", f"{found.device}, by --device auto"),
        ("cpu", f"{found.cores} cores, {found.threads} threads used; memory {memory}"),
    ]
    for number, gpu in enumerate(found.gpus):
        formats = "bf16, fp16, fp32" if gpu.bf16 else "fp16, fp32"
        rows.append(
            (f"cuda:{number}", f"{gpu.name}, {format_bytes(gpu.memory)}, capability {gpu.capability}, {formats}")
        )
    if not found.gpus:
        rows.append(("gpu", "none that torch can use"))
    rows += [(f"attention on {where}", kernel) for where, kernel in found.kernels.items()]
    rows.append(("torch.compile", found.compiler or "not on the CPU: no C++ compiler found; install g++ or clang++"))
    rows += [(f"extra {name}", "installed" if command is None else command) for name, command in found.extras.items()]
    rows.append(
        ("hub", f"{'offline (HF_HUB_OFFLINE)' if found.offline else 'asked for hub ids only'}; {found.hub_cache}")
    )
    return rows


COMMAND = Command(name="doctor", arguments=DoctorCommand, help=HELP, run=run)
