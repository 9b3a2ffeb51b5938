"""One forward pass, regard and transformers in one run, the same weights in both.

    python benchmarks/forward.py                  # MiniLM shape on the CPU, BERT-base in bf16 where there is a GPU
    python benchmarks/forward.py --device cpu --rounds 9

Both get batches of token ids that are ready on the device: transformers a padded rectangle with its mask, regard the
flat tokens. Every case first checks that both say the same.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from common import KEEP_MEMORY, KEEP_NOTE, Row, SeparateProcess, keep, lengths, median_times
from torch import Tensor

from regard.checkpoint.folder import read_folder
from regard.config import AttentionConfig, ModelConfig, PositionConfig
from regard.model import hooks as taps
from regard.model.kernels.cuda_graphs import GraphedForward
from regard.model.linear import pack_weights
from regard.model.transformer import Transformer
from regard.ragged import Ragged

BATCHES = 3  # of the CPU: how much padding a batch needs depends on its longest text, so one batch says little
MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}


@torch.inference_mode(mode=False)
def pair(config: transformers.BertConfig, dtype: torch.dtype, device: str) -> tuple[torch.nn.Module, Transformer]:
    """The same random model there and here, with weights as they are when loaded: such that can still learn."""
    torch.manual_seed(0)
    there = transformers.BertModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        there.save_pretrained(folder)
        here = read_folder(Path(folder), dtype=dtype).network
    here.to(device)
    pack_weights(here)  # as a Model does
    return there.to(device, dtype), here


def batch(sizes: list[int], device: str) -> tuple[Tensor, Tensor, Ragged]:
    """Padded ids and mask, and the same ids flat."""
    rows = [[1000 + (31 * i + size) % 20000 for i in range(size)] for size in sizes]
    max_length = max(sizes)
    padded = torch.tensor([row + [0] * (max_length - len(row)) for row in rows], device=device)
    mask = (torch.arange(max_length) < torch.tensor(sizes).unsqueeze(1)).long().to(device)
    return padded, mask, Ragged.of(rows, device=device)


def agree(
    there: torch.nn.Module, here: Callable[[Ragged], Tensor], sizes: list[int], device: str, max_error: float
) -> None:
    padded, mask, flat = batch(sizes, device)
    expected = there(input_ids=padded, attention_mask=mask).last_hidden_state
    expected = torch.cat([expected[i, :size] for i, size in enumerate(sizes)]).float()
    error = float((here(flat).float() - expected).norm() / expected.norm())
    assert error < max_error, f"regard and transformers differ by {error:.1e}"


@torch.inference_mode()
def on_cpu(rounds: int) -> list[Row]:
    there, here = pair(transformers.BertConfig(**MINILM), torch.float32, "cpu")
    agree(there, lambda flat: here(flat).hidden, [1, 60, 7, 33], "cpu", 1e-5)
    rows = []
    for mean, spread, target in ((24, 1.0, 5.0), (128, 1.0, 4.0), (24, 0.6, None), (128, 0.6, None)):
        rng = random.Random(0)
        data = [lengths(64, mean, rng=rng, spread=spread) for _ in range(BATCHES)]
        made = [batch(sizes, "cpu") for sizes in data]
        peer, ours = median_times(
            lambda made=made: [there(input_ids=padded, attention_mask=mask) for padded, mask, _ in made],
            lambda made=made: [here(flat) for _, _, flat in made],
            rounds=rounds,
        )
        tokens = sum(map(sum, data))
        filled = tokens / sum(padded.numel() for padded, _, _ in made)
        note = f"{tokens / BATCHES:.0f} tokens a batch, padded {filled:.0%} full"
        rows.append(Row(f"64 texts, mean {mean}, spread {spread:g}", peer / BATCHES, ours / BATCHES, target, note))
    for size in (24, 128):
        padded, mask, flat = batch([size], "cpu")
        peer, ours = median_times(
            lambda padded=padded, mask=mask: there(input_ids=padded, attention_mask=mask),
            lambda flat=flat: here(flat),
            rounds=8 * rounds,
        )
        rows.append(Row(f"one text of {size} tokens", peer, ours, 1.0))
    return rows


@torch.inference_mode()
def attention_cost(rounds: int) -> list[Row]:
    """The cost of seeing a layer: the pass alone, and with the weights of the last (it ends with what is asked for)."""
    _, here = pair(transformers.BertConfig(**MINILM), torch.float32, "cpu")
    flat = batch([512], "cpu")[2]
    plain, seen = median_times(lambda: here(flat), lambda: taps.attention(here, flat, layers=[-1]), rounds=4 * rounds)
    rows = [Row("512 tokens, one layer's attention", plain, seen, 1 / 1.1, f"adds {seen / plain - 1:.1%}")]
    config = ModelConfig(
        vocabulary=30522,
        width=384,
        layers=6,
        ffn_width=1536,
        attention=AttentionConfig(12),
        positions=PositionConfig("rotary", max_tokens=8192),
    )
    long = Transformer(config).eval()
    flat = batch([4096], "cpu")[2]
    plain, seen = median_times(lambda: long(flat), lambda: taps.attention(long, flat, layers=[-1]), rounds=3, warm=1)
    rows.append(Row("4,096 tokens, one layer's attention", plain, seen, None, f"adds {seen / plain - 1:.1%}"))
    return rows


@torch.inference_mode()
def on_gpu(rounds: int, batches: int = 40) -> list[Row]:
    there, here = pair(transformers.BertConfig(), torch.bfloat16, "cuda")
    compiled = torch.compile(here, dynamic=True)
    replayed = GraphedForward(compiled, device=torch.device("cuda"), max_tokens=512)
    agree(there, lambda flat: replayed(flat).hidden, [1, 60, 7, 33], "cuda", 3e-2)
    rows = []
    rng = random.Random(0)
    for mean, target in ((24, 6.0), (128, 3.5), (256, None)):
        data = [lengths(64, mean, rng=rng) for _ in range(batches)]
        made = [batch(sizes, "cuda") for sizes in data]
        waiting = [flat.to("cpu") for _, _, flat in made]
        for flat in waiting:
            replayed(flat)  # record every shape first, as a server would at its start
        times = median_times(
            lambda made=made: [there(input_ids=padded, attention_mask=mask) for padded, mask, _ in made],
            lambda made=made: [here(flat) for _, _, flat in made],
            lambda made=made: [compiled(flat) for _, _, flat in made],
            lambda waiting=waiting: [replayed(flat) for flat in waiting],
            rounds=rounds,
            warm=2,
        )
        peer, eager, fused, recorded = (time / batches for time in times)
        tokens = sum(map(sum, data)) / batches
        per = f"{tokens:.0f} tokens a batch, {64e3 / recorded:,.0f} texts/s"
        rows.append(Row(f"64 texts, mean {mean}: eager", peer, eager, None))
        rows.append(Row(f"64 texts, mean {mean}: compiled", peer, fused, None))
        rows.append(Row(f"64 texts, mean {mean}: compiled, replayed", peer, recorded, target, per))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", choices=("forward", "attention_cost"), nargs="*", default=("forward", "attention_cost")
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if args.device == "cuda":
        rows, name = on_gpu(args.rounds), "forward-cuda"
        title = "Forward pass, BERT-base shape, bf16, batches of 64"
        keep(rows, name=name, title=title, peer="transformers, padded", out=args.out)
        return
    shape = "MiniLM shape, fp32, CPU"
    if "forward" in args.only:
        title = f"Forward pass, {shape}"
        keep(on_cpu(args.rounds), name="forward-cpu", title=title, peer="transformers, padded", out=args.out)
    if "attention_cost" not in args.only:
        return
    with SeparateProcess(KEEP_MEMORY) as own:
        rows = own.call(attention_cost, args.rounds)
    title = f"Looking at attention, {shape}"
    keep(
        rows,
        name="attention_cost-cpu",
        title=title,
        peer="the forward pass alone",
        out=args.out,
        note=f"keeps {KEEP_NOTE}",
    )


if __name__ == "__main__":
    main()
