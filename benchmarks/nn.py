"""Benchmarks of regard.nn: compared with torch.nn modules of the same size, in one run.

python benchmarks/nn.py            the table
python benchmarks/nn.py --quick    fewer rounds
"""

from __future__ import annotations

import argparse
import time
import warnings

import torch
import torch.nn as theirs
from comparison import Work
from harness import THREADS, Row, faster, not_slower, report
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from torch import Tensor

from regard import nn

WIDTH, HIDDEN, LAYERS, BATCH, LENGTH = 256, 1024, 3, 32, 32
NEW, VOCABULARY, START = 64, 4000, 1


def pair(heads: int, dropout: float) -> tuple[theirs.Transformer, nn.Transformer]:
    """torch's transformer and ours, with the same weights."""
    torch.manual_seed(0)
    peer = theirs.Transformer(WIDTH, heads, LAYERS, LAYERS, HIDDEN, dropout, batch_first=True)
    return peer, nn.from_torch(peer, causal=True)


def lengths(seed: int) -> Tensor:
    """Half to all of the tokens of each row are real."""
    chance = torch.Generator().manual_seed(seed)
    real = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1), generator=chance)
    real[0] = LENGTH
    return torch.arange(LENGTH) < real  # (batch, length), True at real tokens


def step(model: torch.nn.Module, output: Tensor, optimizer: torch.optim.Optimizer, real: Tensor) -> None:
    del model
    loss = output[real].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def training_step(heads: int, dropout: float, *, rounds: int) -> Row:
    """Forward, backward and AdamW on vectors; padding on both sides; the masks are new in every step."""
    peer, ours = pair(heads, dropout)
    source, target = (torch.randn(BATCH, LENGTH, WIDTH) for _ in range(2))
    future = theirs.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.bool)
    peer_adam, adam = (torch.optim.AdamW(model.parameters(), lr=1e-4) for model in (peer, ours))
    seed = iter(range(10**6))

    def their_step() -> None:
        keep, target_keep = lengths(next(seed)), lengths(next(seed))
        output = peer(
            source,
            target,
            tgt_mask=future,
            src_key_padding_mask=~keep,
            tgt_key_padding_mask=~target_keep,
            memory_key_padding_mask=~keep,
        )
        step(peer, output, peer_adam, target_keep)

    def our_step() -> None:
        keep, target_keep = lengths(next(seed)), lengths(next(seed))
        output = ours(source, target, source_keep=keep, target_keep=target_keep)
        step(ours, output, adam, target_keep)

    return not_slower(
        f"training step, {LAYERS} + {LAYERS} layers, width {WIDTH}, {heads} heads, dropout {dropout:g}, "
        f"batch {BATCH} × {LENGTH}",
        our_step,
        their_step,
        most=1.05,
        rounds=rounds,
    )


def decoding(heads: int, *, rounds: int) -> Row:
    """64 tokens for 32 padded sources: cached ``generate`` against a loop over torch's decoder."""
    peer, stacks = pair(heads, 0.0)
    ours = nn.Seq2Seq(
        VOCABULARY, VOCABULARY, width=WIDTH, heads=heads, hidden=HIDDEN, norm="post", length=NEW + 1
    ).eval()
    ours.encoder, ours.decoder = stacks.encoder.eval(), stacks.decoder.eval()
    peer.eval()
    source = torch.randint(3, VOCABULARY, (BATCH, LENGTH)).masked_fill(~lengths(0), ours.padding)

    @torch.inference_mode()
    def their_loop() -> Tensor:
        ignore = source == ours.padding
        context = peer.encoder(ours.source(source), src_key_padding_mask=ignore)
        tokens = torch.full((BATCH, 1), START)
        for _ in range(NEW):
            future = theirs.Transformer.generate_square_subsequent_mask(tokens.shape[1], dtype=torch.bool)
            out = peer.decoder(
                ours.target(tokens),
                context,
                tgt_mask=future,
                memory_key_padding_mask=ignore[:, : context.shape[1]],
            )
            logits = ours.logits(out[:, -1])
            logits[:, ours.padding] = -torch.inf
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
        return tokens[:, 1:]

    def our_loop() -> Tensor:
        return nn.generate(ours, source, start=START, max_new_tokens=NEW).tokens

    assert torch.equal(our_loop(), their_loop()), "both generate the same tokens"
    return faster(
        f"greedy decoding of {NEW} tokens, batch {BATCH}, {heads} heads, cached, against torch's loop",
        our_loop,
        their_loop,
        least=3,
        rounds=rounds,
    )


def rows(rounds: int) -> list[tuple[str, Work]]:
    return [
        ("training, 8 heads", lambda: training_step(8, 0.1, rounds=5 * rounds)),
        ("training, 4 heads", lambda: training_step(4, 0.1, rounds=5 * rounds)),
        ("training, no dropout", lambda: training_step(8, 0.0, rounds=5 * rounds)),
        ("decoding", lambda: decoding(8, rounds=max(3, rounds // 2))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 7")
    rounds = 3 if parser.parse_args().quick else 7
    torch.set_num_threads(THREADS)
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
    done: list[Row] = []
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), transient=True
    ) as progress:
        task = progress.add_task("")
        for name, measure in rows(rounds):
            progress.update(task, description=f"measuring {name}")
            row = measure()
            assert isinstance(row, Row)
            done.append(row)
    report("nn", "Modules: regard against torch.nn, the same weights, float32", done)


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"took {time.perf_counter() - start:.0f} s")
