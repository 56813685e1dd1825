"""A small transformer that learns to read digits pasted into a larger empty picture."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
import transformers

SIDE, DIGIT, PATCH = 24, 8, 4
"""Pixels of the picture, of a digit and of a patch."""


class Pasted(NamedTuple):
    """Pictures ``(count, 3, side, side)``, what they show, and the corner of each digit."""

    pixels: torch.Tensor
    labels: torch.Tensor
    corners: torch.Tensor  # (count, 2): row, column


def pasted(images: torch.Tensor, labels: torch.Tensor, seed: int) -> Pasted:
    """Each digit at a random place of an empty picture, on the grid of patches."""
    chance = torch.Generator().manual_seed(seed)
    places = (SIDE - DIGIT) // PATCH + 1
    corners = PATCH * torch.randint(0, places, (len(images), 2), generator=chance)
    pixels = torch.zeros(len(images), 3, SIDE, SIDE)
    for number, (row, column) in enumerate(corners.tolist()):
        pixels[number, :, row : row + DIGIT, column : column + DIGIT] = images[number]
    return Pasted(pixels, labels, corners)


def data() -> tuple[Pasted, Pasted]:
    """1,500 pictures to learn from, and 297 others."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32) / 16
    labels = torch.tensor(found.target)
    return pasted(images[:1500], labels[:1500], 1), pasted(images[1500:], labels[1500:], 2)


def trained(learn: Pasted, epochs: int = 40) -> transformers.ViTForImageClassification:
    """A ViT of three layers, trained with digits at new places in every epoch."""
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128,
        image_size=SIDE, patch_size=PATCH, num_labels=10,
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    steps = epochs * -(-len(learn.labels) // 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    digits = torch.stack(
        [
            pixels[0, row : row + DIGIT, column : column + DIGIT]
            for pixels, (row, column) in zip(learn.pixels, learn.corners.tolist())
        ]
    )
    for epoch in range(epochs):
        now = pasted(digits, learn.labels, 100 + epoch)
        for batch in torch.randperm(len(digits)).split(64):
            loss = F.cross_entropy(model(pixel_values=now.pixels[batch]).logits, now.labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()
