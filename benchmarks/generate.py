"""Decoding, regard and transformers in one run, the same weights in both.

    python benchmarks/generate.py                  # GPT-2-small shape and Transformer-base translation on the CPU
    python benchmarks/generate.py --device cuda    # GPT-2-small shape in bf16, steps recorded
    python benchmarks/generate.py --tiny           # small networks, to see that it runs
    python benchmarks/generate.py --peer-keeps-memory  # transformers keeps freed memory too, as regard does

Each runs in a separate process, started as its users start it; the two take turns, one waits while the other runs.
Prompts have different lengths: transformers gets them padded on the left with their mask (sources on the right), regard
as they are. Neither may end early, so both do the same number of steps. Every case first checks that both say the same
(in bf16 rounding may choose another word of two that are alike, so there the first words are compared).
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from common import DEFAULT_ALLOCATOR, KEEP_MEMORY, Row, SeparateProcess, alternate, keep, lengths, memory_note

PROMPTS, NEW = 16, 128
TARGETS = {"cpu": 1.4, "cuda": 6.0}
LOADED: dict[str, Any] = {}  # what a process keeps between two calls


def gpt2(tiny: bool) -> transformers.PreTrainedModel:
    small = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500} if tiny else {}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**small, bos_token_id=0, eos_token_id=0))


def translator(tiny: bool) -> transformers.PreTrainedModel:
    """Marian's shape is that of the Transformer of 2017, base."""
    width, layers, vocabulary = (64, 2, 500) if tiny else (512, 6, 37000)
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", layers), ("attention_heads", 8), ("ffn_dim", 4 * width))
    }
    config = transformers.MarianConfig(
        vocab_size=vocabulary,
        d_model=width,
        **sides,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=1,
        scale_embedding=True,
        max_position_embeddings=512,
    )
    return transformers.MarianMTModel(config)


def load_peer(folder: str, rows: Sequence[Sequence[int]], device: str) -> None:
    quiet()
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, config.architectures[0])
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    LOADED["model"] = kind.from_pretrained(folder, dtype=dtype).to(device).eval()
    LOADED["batch"] = padded(rows, device, left=not config.is_encoder_decoder)


def run_peer(new: int, beams: int) -> list[list[int]]:
    model, batch = LOADED["model"], LOADED["batch"]
    start = 1 if model.config.is_encoder_decoder else batch["input_ids"].shape[1]
    settings = {"num_beams": beams, "do_sample": False, "max_new_tokens": new, "min_new_tokens": new}
    text: list[list[int]] = model.generate(**batch, **settings, pad_token_id=0)[:, start:].tolist()
    return text


def load_own(folder: str, rows: Sequence[Sequence[int]], device: str) -> None:
    import regard  # here, so that the peer's process has nothing of it

    dtype = "bf16" if device == "cuda" else "fp32"
    LOADED["model"] = regard.load(folder, device=device, dtype=dtype, compile=device == "cuda")
    LOADED["rows"] = rows


def run_own(new: int, beams: int) -> list[list[int]]:
    text: list[list[int]] = LOADED["model"].generate_ids(LOADED["rows"], max_tokens=new, min_tokens=new, beams=beams)
    return text


def quiet() -> None:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def padded(rows: Sequence[Sequence[int]], device: str, *, left: bool) -> dict[str, torch.Tensor]:
    max_length = max(map(len, rows))
    fill = [[0] * (max_length - len(row)) for row in rows]
    ids = [[*more, *row] if left else [*row, *more] for row, more in zip(rows, fill, strict=True)]
    ones = [[1] * len(row) for row in rows]
    mask = [[*more, *row] if left else [*row, *more] for row, more in zip(ones, fill, strict=True)]
    return {"input_ids": torch.tensor(ids, device=device), "attention_mask": torch.tensor(mask, device=device)}


def case(name: str, there: transformers.PreTrainedModel, device: str, args: argparse.Namespace, *, beams: int) -> Row:
    rng = random.Random(0)
    sizes = lengths(args.prompts, 32, rng=rng, spread=0.6, max_length=128)
    rows = [[rng.randrange(2, there.config.vocab_size) for _ in range(size)] for size in sizes]
    new = args.new
    with (
        tempfile.TemporaryDirectory() as folder,
        SeparateProcess(KEEP_MEMORY if args.peer_keeps_memory else DEFAULT_ALLOCATOR) as peer,
        SeparateProcess(KEEP_MEMORY) as own,
    ):
        there.save_pretrained(folder)
        peer.call(load_peer, folder, rows, device)
        own.call(load_own, folder, rows, device)
        one, other = peer.call(run_peer, new, beams), own.call(run_own, new, beams)
        sure = new if device == "cpu" else 4
        same = sum(left[:sure] == right[:sure] for left, right in zip(one, other, strict=True))
        assert same >= (len(rows) if device == "cpu" else 0.7 * len(rows)), f"only {same} of {len(rows)} are the same"
        peer_ms, own_ms = alternate(
            partial(peer.milliseconds, run_peer, new, beams),
            partial(own.milliseconds, run_own, new, beams),
            rounds=args.rounds,
        )
    tokens = len(rows) * new
    note = f"{1e3 * tokens / own_ms:,.0f} tokens/s, {own_ms / new:.1f} ms a step; {same} of {len(rows)} alike"
    return Row(name, peer_ms, own_ms, TARGETS[device] if beams == 1 else 2.0 if device == "cpu" else None, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    parser.add_argument("--new", type=int, default=NEW)
    parser.add_argument("--only", choices=("gpt2", "translate"), nargs="*", default=("gpt2", "translate"))
    parser.add_argument("--tiny", action="store_true", help="small networks, to see that it runs")
    parser.add_argument("--peer-keeps-memory", action="store_true", help="the peer keeps freed memory as well")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    quiet()
    torch.manual_seed(0)
    rows = []
    if "gpt2" in args.only:
        name = f"GPT-2 small, {args.prompts} prompts, {args.new} new tokens, greedy"
        rows.append(case(name, gpt2(args.tiny), args.device, args, beams=1))
    if "translate" in args.only:
        name = f"Transformer base, {args.prompts} texts, {args.new} new tokens, 4 beams"
        rows.append(case(name, translator(args.tiny), args.device, args, beams=4))
    title = f"Decoding, {'fp32, CPU' if args.device == 'cpu' else 'bf16, GPU'}"
    name = f"generate-{args.device}" + ("-both-keep" if args.peer_keeps_memory else "")
    keep(rows, name=name, title=title, peer="transformers", out=args.out, note=memory_note(args.peer_keeps_memory))


if __name__ == "__main__":
    main()
