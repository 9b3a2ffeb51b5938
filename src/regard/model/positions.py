"""Positions: tables added to embeddings, rotations of queries and keys, biases on scores.

Tables that follow from the config are computed on the CPU even when weights are on the meta device, so that a network
can be built first and loaded from a file.

Shapes: N tokens, K head width, H heads, L maximum length, R = 2 L - 1 distances from -(L - 1) to L - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.config import PositionConfig, RotaryScaling
from regard.errors import InputError


def check_length(length: int, limit: int | None) -> None:
    """Raise an error for a sequence that is longer than the network allows."""
    if limit is not None and length > limit:
        raise InputError(
            f"a sequence has {length} tokens, but this network reads at most {limit}. "
            f"Split it into windows of at most {limit} tokens, or use a network with a longer context."
        )


def sinusoidal(length: int, width: int, *, halves: bool = False) -> Tensor:
    """(L, D) fixed position vectors: sines in even and cosines in odd dimensions (Vaswani et al. 2017).

    The wavelengths grow from 2 pi to 20,000 pi over the dimensions. With `halves` all sines come first, then all
    cosines, as in Marian.
    """
    place_L1 = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)
    rate_D = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width)
    angle = place_L1 * rate_D
    table = torch.empty(length, width, dtype=torch.float64, device="cpu")
    middle = (width + 1) // 2
    sines, cosines = (slice(0, middle), slice(middle, None)) if halves else (slice(0, None, 2), slice(1, None, 2))
    table[:, sines] = angle.sin()
    table[:, cosines] = angle.cos()[:, : width // 2]
    return table.float()


class Rotary(nn.Module):
    """Rotary positions (Su et al. 2021): pairs of dimensions of queries and keys are rotated by position * frequency.

    The product of a rotated query and key then depends on the distance of their positions only.
    """

    def __init__(self, config: PositionConfig, head_width: int, *, theta: float) -> None:
        super().__init__()
        self.config, self.head_width, self.theta = config, head_width, theta
        self.frequency_K: Tensor
        self.register_buffer("frequency_K", self.frequencies(), persistent=False)

    def frequencies(self) -> Tensor:
        step_K = torch.arange(0, self.head_width, 2, dtype=torch.float32, device="cpu")
        frequency_K = self.theta ** (-step_K / self.head_width)
        scaling = self.config.scaling
        if scaling is None:
            return frequency_K
        if scaling.kind == "linear":
            return frequency_K / scaling.factor
        return _llama3(frequency_K, scaling) if scaling.kind == "llama3" else _yarn(frequency_K, scaling, self.theta)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Rotary:
        """Move with the network, but stay in fp32: rounded frequencies give wrong angles at far positions."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch gives it no types
        self.frequency_K = self.frequencies().to(self.frequency_K.device)
        return self

    def forward(self, positions_N: Tensor) -> tuple[Tensor, Tensor]:
        """(N, 1, K) cosines and sines of the given positions."""
        angle_NK = positions_N.float().unsqueeze(1) * self.frequency_K
        angle_NK = torch.cat((angle_NK, angle_NK), dim=-1).unsqueeze(1)
        size = _yarn_size(self.config.scaling)
        return angle_NK.cos() * size, angle_NK.sin() * size


def rotate(x_NHK: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate each pair (i, i + K/2) of dimensions by its angle, computed in fp32."""
    cos_N1K, sin_N1K = rotary
    left, right = x_NHK.float().chunk(2, dim=-1)
    turned = torch.cat((-right, left), dim=-1)
    return (x_NHK.float() * cos_N1K + turned * sin_N1K).to(x_NHK.dtype)


def _llama3(frequency_K: Tensor, scaling: RotaryScaling) -> Tensor:
    """Llama 3.1: low frequencies are divided by the factor, high ones kept, those between interpolated."""
    assert scaling.original_length is not None
    wave_K = 2 * math.pi / frequency_K
    smooth_K = (scaling.original_length / wave_K - scaling.low) / (scaling.high - scaling.low)
    blended_K = (1 - smooth_K) * frequency_K / scaling.factor + smooth_K * frequency_K
    slow_K, fast_K = wave_K > scaling.original_length / scaling.low, wave_K < scaling.original_length / scaling.high
    return torch.where(slow_K, frequency_K / scaling.factor, torch.where(fast_K, frequency_K, blended_K))


def _yarn(frequency_K: Tensor, scaling: RotaryScaling, theta: float) -> Tensor:
    """YaRN (Peng et al. 2023): low frequencies are divided by the factor, high ones kept, a linear ramp between."""
    assert scaling.original_length is not None
    half = frequency_K.numel()

    def dimension(rotations: float) -> float:
        return half * math.log(scaling.original_length / (rotations * 2 * math.pi)) / math.log(theta)  # type: ignore[operator]  # asserted above

    low, high = max(math.floor(dimension(scaling.high)), 0), min(math.ceil(dimension(scaling.low)), 2 * half - 1)
    ramp_K = ((torch.arange(half, dtype=torch.float32, device="cpu") - low) / max(high - low, 0.001)).clamp(0, 1)
    return frequency_K / scaling.factor * ramp_K + frequency_K * (1 - ramp_K)


def _yarn_size(scaling: RotaryScaling | None) -> float:
    if scaling is None or scaling.kind != "yarn":
        return 1.0
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    return 0.1 * math.log(scaling.factor) + 1.0 if scaling.factor > 1 else 1.0


class RelativeBias(nn.Module):
    """Relative positions of T5 (Raffel et al. 2020): a learned score bias per head and bucket of distances."""

    def __init__(self, config: PositionConfig, heads: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.buckets, self.max_distance, self.bidirectional = config.buckets, config.max_distance, bidirectional
        self.table = nn.Embedding(config.buckets, heads)

    def forward(self, length: int) -> Tensor:
        """(H, R) the bias of each distance key - query."""
        distance_R = torch.arange(1 - length, length, device=self.table.weight.device)
        bias_HR: Tensor = self.table(self.bucket(distance_R)).T.contiguous()
        return bias_HR

    def bucket(self, distance_R: Tensor) -> Tensor:
        """The bucket of each distance: one per small distance, then buckets that grow with the logarithm."""
        buckets, start_R = self.buckets, torch.zeros_like(distance_R)
        if self.bidirectional:
            buckets //= 2
            start_R = (distance_R > 0).long() * buckets
            away_R = distance_R.abs()
        else:
            away_R = (-distance_R).clamp(min=0)
        exact = buckets // 2
        growth_R = torch.log(away_R.float() / exact) / math.log(self.max_distance / exact) * (buckets - exact)
        far_R = (exact + growth_R.clamp(min=0).long()).clamp(max=buckets - 1)
        return start_R + torch.where(away_R < exact, away_R, far_R)


class Alibi(nn.Module):
    """ALiBi (Press et al. 2022): a penalty on scores that grows with the distance, with a fixed slope per head."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slope_H: Tensor
        self.register_buffer("slope_H", self.slopes(heads), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Alibi:
        """Move with the network, but stay in fp32 when it is cast."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch gives it no types
        self.slope_H = self.slopes(self.slope_H.numel()).to(self.slope_H.device)
        return self

    @staticmethod
    def slopes(heads: int) -> Tensor:
        def powers(count: int) -> list[float]:
            return [2.0 ** (-8.0 * (i + 1) / count) for i in range(count)]

        power = 2 ** int(math.log2(heads))
        return torch.tensor(powers(power) + powers(2 * power)[0::2][: heads - power], device="cpu")

    def forward(self, length: int) -> Tensor:
        """(H, R) minus slope times distance."""
        distance_R = torch.arange(1 - length, length, device=self.slope_H.device)
        return -self.slope_H.unsqueeze(1) * distance_R.abs()


def build_bias(config: PositionConfig, heads: int, *, bidirectional: bool) -> RelativeBias | Alibi | None:
    """The score bias of this kind of positions, if it has one."""
    if config.kind == "relative":
        return RelativeBias(config, heads, bidirectional=bidirectional)
    return Alibi(heads) if config.kind == "alibi" else None
