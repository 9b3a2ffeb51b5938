"""What training will take, by rule of thumb: six operations a parameter and token, sixteen bytes a parameter."""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.check.finding import Estimate, Lengths

# Operations a second that training reaches, not the peak on paper.
SPEEDS = {"cpu, 8 cores": 2e11, "one GPU of 2020 (A100, bf16)": 1e14, "one GPU of 2023 (H100, bf16)": 3e14}
STATE = 16  # bytes a parameter: weight, gradient and two moments of Adam in fp32
KEPT = 34  # bytes a token, layer and unit of width that the backward pass needs
BATCH = 8192  # tokens


@dataclass(frozen=True)
class Size:
    """As much of a network as the estimate needs."""

    name: str
    parameters: int
    layers: int
    width: int
    vocabulary: int


def estimate(size: Size, lengths: Lengths) -> Estimate:
    """Time of one pass over all rows, and memory at the usual batch."""
    inner = max(size.parameters - size.vocabulary * size.width, 1)  # looking a word up costs next to nothing
    work = 6.0 * inner * lengths.total
    batch = max(BATCH, min(lengths.longest, lengths.limit or lengths.longest))
    memory = STATE * size.parameters + KEPT * size.layers * size.width * batch
    return Estimate(
        model=size.name,
        parameters=size.parameters,
        tokens=lengths.total,
        memory=memory,
        seconds={device: work / speed for device, speed in SPEEDS.items()},
        assumes=f"batches of {batch:,} tokens, Adam, all weights trained",
    )
