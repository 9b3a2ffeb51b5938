"""Time and memory of one layer against the length of a text and the width of its vectors.

    python benchmarks/cost.py --out src/regard/lessons/pages/data
    python benchmarks/cost.py --device cuda --out src/regard/lessons/pages/data

Writes cost-cpu.json or cost-cuda.json, which lesson 10 draws.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import torch

from regard.lessons.cost import LAYERS, LayerCost, layer_cost

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
WIDTHS = (64, 128, 256, 512, 1024)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    cases = [(length, 256) for length in LENGTHS] + [(512, width) for width in WIDTHS if width != 256]
    costs = [measure(layer, case, options) for layer in LAYERS for case in cases]
    name = torch.cuda.get_device_name() if options.device != "cpu" else f"one core, {platform.machine()}"
    result = {
        "command": f"python benchmarks/cost.py --device {options.device} --out src/regard/lessons/pages/data",
        "machine": name,
        "columns": ["layer", "length", "width", "milliseconds", "megabytes"],
        "rows": [
            [cost.layer, cost.length, cost.width, round(cost.milliseconds, 3), round(cost.megabytes, 3)]
            for cost in costs
        ],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"cost-{options.device.partition(':')[0]}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(path)


def measure(layer: str, case: tuple[int, int], options: argparse.Namespace) -> LayerCost:
    cost = layer_cost(layer, length=case[0], width=case[1], device=options.device, repeats=options.repeats)
    print(
        f"{layer:16} {cost.length:5} {cost.width:5} {cost.milliseconds:10.3f} ms {cost.megabytes:10.3f} MB", flush=True
    )
    return cost


if __name__ == "__main__":
    main()
