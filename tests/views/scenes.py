"""Recordings that are small and awkward: every axis another prime, and everything that attention can have."""

from __future__ import annotations

import functools

import numpy as np
import torch

import regard
from heads.synthetic_heads import recording_of
from regard import biases, masks
from regard.ablation import Ablation
from regard.ablation.sweep import PLACES
from regard.heads import Table
from regard.kernels import reference
from regard.recording import Recording, ScoredCall

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, CHANNELS = 2, 6, 2, 7, 11, 5
SCALE, SOFTCAP = 0.7, 5.0


def call_and_weights(
    *, layer=0, kind="decoder", run=0, queries=QUERIES, keys=KEYS, dtype=torch.float32, seed=0
):
    """A call with grouped heads, bias, softcap, sinks, and a row that sees nothing; and what it must show."""
    chance = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=chance).to(dtype)

    q, k = normal(BATCH, HEADS, queries, CHANNELS) * 2, normal(BATCH, KEY_HEADS, keys, CHANNELS)
    sinks = torch.randn(HEADS, generator=chance)
    keep = torch.ones(BATCH, keys, dtype=torch.bool)
    keep[1, : keys - queries + 1] = False  # the first query of the second text sees nothing
    mask = masks.causal() & masks.padding(keep)
    bias = biases.alibi(HEADS)
    trace = reference.attention(
        q.double().numpy(),
        k.double().numpy(),
        k.double().numpy(),
        mask=np.broadcast_to(mask.dense(queries, keys).numpy(), (BATCH, HEADS, queries, keys)),
        bias=bias.dense(queries, keys).double().numpy(),
        scale=SCALE,
        softcap=SOFTCAP,
        sinks=sinks.double().numpy(),
    )
    call = ScoredCall(
        f"layers.{layer}.attention",
        kind,
        layer,
        q,
        k,
        torch.from_numpy(trace["lse"]).float(),
        mask=mask,
        bias=bias,
        scale=SCALE,
        softcap=SOFTCAP,
        sinks=sinks,
        run=run,
    )
    return call, trace["weights"]


def words(count, letter="t"):
    return [f"{letter}{i}" for i in range(count)]


def recording(layers=3):
    """A recording of some layers, and the weights of each."""
    made = [call_and_weights(layer=layer, seed=layer) for layer in range(layers)]
    seen = Recording("Model", [call for call, _ in made])
    seen.tokens = [words(KEYS, "a"), words(KEYS, "b")]
    return seen, [weights for _, weights in made]


def softmax(*shape, seed=0):
    """Rows that sum to 1."""
    scores = 2 * np.random.default_rng(seed).normal(size=shape)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@functools.cache
def swept(by):
    """What a sweep over an encoder-decoder finds."""
    places = {"head": (0, 1), "layer": (0,), "key": (2,), "edge": (1, 0)}[by]
    rows_found = [(kind, *places, 1.0, 1.5, 0.5, 0.1) for kind in ("encoder", "decoder", "cross")]
    return Ablation(by, "loss", 1.0, Table((*PLACES[by], "before", "after", "difference", "kl"), rows_found))


@functools.cache
def cut():
    """What eviction finds in a small decoder."""
    decoder = language_model()
    with torch.no_grad(), regard.watch(decoder) as read:
        decoder(torch.arange(1, 40)[None])
    return regard.heads.eviction(read)


def language_model():
    """A small decoder, the same each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()


@functools.cache
def learned():
    """A small encoder with the gradients of a loss."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
        with regard.watch(model, gradients=True) as found:
            model(torch.randn(1, 5, 16)).square().sum().backward()
    return found


@functools.cache
def attributed():
    """What the heads of a small decoder gave to a logit."""
    return regard.attribution(language_model(), torch.tensor([[3, 1, 4, 1, 5]]), target=9)


def monitored(steps=6):
    """Rows as a monitor of an encoder-decoder writes them: two layers of two heads of each kind."""
    return [
        {
            "step": 10 * step,
            "kind": kind,
            "layer": layer,
            "head": head,
            "entropy": 2.0 - step * (layer + head + 1) / 20,
            "score": 1.0 + step,
            "first": 0.1,
            "gradient": 0.5**step,
            "information": step * (layer + head + 1) / 50,
        }
        for step in range(steps)
        for kind in ("encoder", "decoder", "cross")
        for layer in range(2)
        for head in range(2)
    ]


@functools.cache
def pictured():
    """One layer over a picture of 2 × 2 patches, with a class token."""
    generator = torch.Generator().manual_seed(4)
    seen = recording_of(torch.randn(5, 5, generator=generator))
    seen.picture = regard.Picture(torch.rand(8, 8, generator=generator), grid=(2, 2), tokens=slice(1, 5))
    return seen
