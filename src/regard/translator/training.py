"""Training: batches by length, AdamW, warm-up and cosine, checkpoints that resume exactly.

A run that is killed at any moment and resumed gives the same weights, bit for bit, as one that was never
interrupted (on one process, with the same number of threads).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from regard import nn
from regard.checked_files import digest
from regard.checks import check_number
from regard.errors import FileError, TrainingError
from regard.heads import monitor
from regard.processes import Processes
from regard.translator import training_checkpoint, training_log
from regard.translator.dictionary import DictionaryEntry
from regard.translator.epoch_pairs import EpochPairs
from regard.translator.linear_precision import linear_precision
from regard.translator.piece_dropout import PieceDropout
from regard.translator.pretrained_encoder import start_from_pretrained
from regard.translator.recipe import Recipe
from regard.translator.sentence_batches import EncodedPair, encode_pairs, epoch_batches, pad
from regard.translator.sentence_pairs import Pair
from regard.translator.training_checkpoint import TrainingPosition
from regard.translator.training_folder import TrainingRun, begin_run, locked_folder, open_run
from regard.translator.translate_text import build_model
from regard.translator.vocabulary import PADDING, START, UNKNOWN

REDRAWN = 60.0
"""Seconds between two plots of the loss."""

MONITOR, MONITORED = "monitor.csv", 100
"""Where the numbers of the heads are, and the most steps from one measurement to the next."""


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a run after a step.

    >>> TrainingProgress(step=10, steps=500, epoch=0, loss=6.5, held_out=None, seconds=3.0, left=147.0).left
    147.0
    """

    step: int
    steps: int
    epoch: int
    loss: float  # the mean since the last line of the log, per token
    held_out: float | None  # the loss on held-out sentences, when last measured
    seconds: float
    left: float  # estimated seconds left


Listener = Callable[[TrainingProgress], None]


def train(
    pairs: Sequence[Pair],
    folder: str | Path,
    recipe: Recipe | None = None,
    *,
    dictionary: Sequence[DictionaryEntry] | None = None,
    resume: bool = False,
    minutes: float | None = None,
    processes: Processes | None = None,
    report: Listener | None = None,
    lettering: training_log.PlotStyle | None = None,
) -> TrainingRun:
    """Train with a recipe in a folder, or resume the run in it.

    Args:
        pairs: from :func:`read_pairs`.
        folder: where everything is written; see ``training_folder.py``.
        recipe: what to do. To resume, it must be the one that the run started with.
        dictionary: from :func:`read_dictionary`; its words are taught alongside the sentences.
        resume: continue from the last checkpoint; without one, start from the beginning.
        minutes: stop after this time, with a checkpoint to continue from.
        processes: those that train together; see :func:`joined`.
        report: called after every step on the first process.
        lettering: language and fonts of the loss plot.
    """
    folder, recipe, processes = Path(folder), recipe or Recipe(), processes or Processes()
    _check_minutes(minutes)
    try:
        with locked_folder(folder) if processes.first else nullcontext():
            if processes.first:
                begin_run(folder, pairs, recipe, dictionary, processes=processes.count, resume=resume)
            processes.wait()
            run = open_run(folder, pairs, recipe, dictionary)
            with torch.random.fork_rng(devices=[]):
                training = _Training(run, processes, report or (lambda _: None), lettering)
                with training.monitored():
                    training.go(minutes)
    except FileError as error:
        raise error.but(
            do="Free some space or fix the permissions, then continue with --resume: "
            "the training continues from its last checkpoint.",
        ) from error
    return run


def _check_minutes(minutes: float | None) -> None:
    if minutes is not None:
        check_number("minutes", minutes, 0)


def learning_rate(recipe: Recipe, step: int) -> float:
    """The learning rate of a step, counted from 0: linear warm-up, half a cosine, then constant.

    >>> recipe = Recipe(learning_rate=1.0, warm_up=10, steps=110, last_learning_rate=0.0)
    >>> [round(learning_rate(recipe, step), 2) for step in (0, 9, 60, 110)]
    [0.1, 1.0, 0.5, 0.0]
    """
    if step < recipe.warm_up:
        return recipe.learning_rate * (step + 1) / recipe.warm_up
    done = (step - recipe.warm_up) / max(1, recipe.steps - recipe.constant_steps - recipe.warm_up)
    share = 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
    return recipe.learning_rate * (recipe.last_learning_rate + (1.0 - recipe.last_learning_rate) * share)


def token_losses(logits: Tensor, following: Tensor, *, smoothing: float) -> Tensor:
    """The loss summed over all tokens that are not padding."""
    return F.cross_entropy(
        logits.flatten(0, 1),
        following.flatten(),
        ignore_index=PADDING,
        label_smoothing=smoothing,
        reduction="sum",
    )


def hide_tokens(target: Tensor, share: float) -> Tensor:
    """The decoder's input with this share of its tokens unknown, so that it must read the source.

    >>> hide_tokens(torch.tensor([[START, 5, 6, PADDING]]), 1.0)
    tensor([[1, 3, 3, 0]])
    """
    if not share:
        return target
    hidden = (torch.rand(target.shape) < share) & (target != START) & (target != PADDING)
    return target.masked_fill(hidden, UNKNOWN)


def divergence_of_halves(logits: Tensor, following: Tensor) -> Tensor:
    """The KL divergence between the two halves of a batch, the mean of both directions, summed over tokens.

    Both halves are the same sentences with different dropout: Liang et al., R-Drop (2021).
    """
    first, second = F.log_softmax(logits, dim=-1).chunk(2)  # (batch, length, token)
    kept = following.chunk(2)[0] != PADDING
    # KL(p‖q) + KL(q‖p) = Σ (p − q)(log p − log q)
    both = ((first.exp() - second.exp()) * (first - second)).sum(-1)  # (batch, length)
    return both[kept].sum() / 2


class _Training:
    """The state of a run."""

    def __init__(
        self,
        run: TrainingRun,
        processes: Processes,
        report: Listener,
        lettering: training_log.PlotStyle | None,
    ) -> None:
        self.run, self.recipe, self.processes, self.report = run, run.recipe, processes, report
        self.lettering = lettering
        self.pairs = EpochPairs(run.corpus, run.recipe, run.lexicon)
        self.spelling = PieceDropout(run.vocabularies.english, run.recipe.piece_dropout, seed=run.recipe.seed)
        self.examples: list[EncodedPair] = []
        self.sizes: list[tuple[int, int]] = []
        watched = run.corpus.validation or run.corpus.held_out
        told = [Pair(one.english, reference) for one in watched for reference in one.references]
        self.held_out = self._encode(told)
        torch.manual_seed(self.recipe.seed)
        self.model = build_model(self.recipe, run.vocabularies)
        if self.recipe.pretrained:
            start_from_pretrained(self.model, run.vocabularies.english, seed=self.recipe.seed)
        self.optimizer = _optimizer(self.model, self.recipe)
        # Every process has its own dropout.
        torch.manual_seed(self.recipe.seed + 1 + processes.own)
        self.position = self._resumed()
        alone = processes.count == 1
        self.parallel: torch.nn.Module = self.model if alone else DistributedDataParallel(self.model)
        self.held_out_loss: float | None = None
        self.drawn = time.monotonic()

    def _encode(self, pairs: Sequence[Pair]) -> list[EncodedPair]:
        return encode_pairs(pairs, self.run.vocabularies, longest=self.recipe.length)

    def _resumed(self) -> TrainingPosition:
        found = training_checkpoint.load_checkpoint(
            self.run.folder, self.model, self.optimizer, self.processes.own
        )
        position = found or TrainingPosition(log_digest=digest(b""))
        if self.processes.first and position.step < self.recipe.steps:
            training_checkpoint.drop_snapshots(
                self.run.folder, after=position.step, every=self.recipe.checkpoint_every
            )
            training_log.cut_after(self.run.folder, position.log_bytes, position.log_digest)
        return position

    def monitored(self) -> AbstractContextManager[object]:
        """Numbers of every head, written next to the log, from the first process."""
        if not self.processes.first or self.position.step >= self.recipe.steps:
            return nullcontext()
        every = max(1, min(MONITORED, self.recipe.steps // 50))
        return monitor(self.model, every=every, out=self.run.folder / MONITOR, start=self.position.step)

    def go(self, minutes: float | None) -> None:
        """Train until the last step, or until time is up."""
        start, before, first = time.monotonic(), self.position.seconds, self.position.step
        budget = math.inf if minutes is None else 60.0 * minutes
        epoch, batches = -1, [[0]]
        stop = False
        while self.position.step < self.recipe.steps and not stop:
            if epoch != self.position.epoch:
                epoch, batches = self.position.epoch, self._batches(self.position.epoch)
            spent = time.monotonic() - start
            stop = self._step(batches, spent >= budget)
            spent = time.monotonic() - start
            self.position.seconds = before + spent
            self._write(stop)
            pace = spent / (self.position.step - first)
            self._tell(min(pace * (self.recipe.steps - self.position.step), max(0.0, budget - spent)))
        if self.processes.first:
            training_log.draw(self.run.folder, self.lettering)
        self.processes.wait()

    def _batches(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch; its pairs and their spelling depend only on the seed and its number."""
        encoded = encode_pairs(self.pairs.draw(epoch), self.run.vocabularies, longest=self.recipe.length)
        self.examples = self.spelling.respell(encoded, epoch=epoch, longest=self.recipe.length)
        self.sizes = [example.size for example in self.examples]
        return epoch_batches(self.sizes, self.recipe.tokens_per_batch, seed=self.recipe.seed, epoch=epoch)

    def _step(self, batches: list[list[int]], late: bool) -> bool:
        """One step of the optimizer; returns whether a process says that time is up."""
        recipe, position, count = self.recipe, self.position, self.processes.count
        rows = batches[position.batch]
        tokens = sum(self.sizes[row][0] for row in rows)
        own = rows[self.processes.own :: count]
        # A process without rows must still participate; it contributes nothing.
        batch = pad([self.examples[row] for row in own or rows[:1]])
        consistent = bool(recipe.consistency) and position.step >= recipe.consistent_from * recipe.steps
        if consistent:
            batch = batch.twice()
        with linear_precision(recipe.precision):
            logits = self.parallel(batch.source, hide_tokens(batch.target, recipe.target_dropout))
        loss = token_losses(logits, batch.following, smoothing=recipe.label_smoothing) * bool(own)
        if consistent:
            loss = loss / 2 + recipe.consistency * divergence_of_halves(logits, batch.following) * bool(own)
        # DistributedDataParallel averages gradients over processes; the loss is per token over all.
        (loss * (count / tokens)).backward()
        if recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(recipe, position.step) * group["share"]
        self.optimizer.step()
        self.optimizer.zero_grad()
        total = self.processes.total(torch.tensor([loss.item(), float(late)], dtype=torch.float64))
        self._advance(total[0].item(), tokens, len(batches))
        return bool(total[1] > 0)

    def _advance(self, loss: float, tokens: int, batches: int) -> None:
        position = self.position
        position.step += 1
        if not math.isfinite(loss):
            raise TrainingError(
                "The loss must be a finite number (step = {step}).",
                got="{loss}",
                do="Lower learning_rate or lengthen warm_up, and train in another folder.",
                step=position.step,
                loss=loss,
            )
        position.loss += loss
        position.tokens += tokens
        position.batch += 1
        if position.batch == batches:
            position.epoch, position.batch = position.epoch + 1, 0

    def _write(self, stop: bool) -> None:
        """Write the log and the checkpoint when they are due."""
        position, recipe = self.position, self.recipe
        mean = position.loss / position.tokens
        self.mean = mean
        due = stop or position.step == recipe.steps or position.step % recipe.checkpoint_every == 0
        if position.step % recipe.log_every == 0 or position.step == recipe.steps:
            position.loss, position.tokens = 0.0, 0
            self._log({"loss": mean, "learning_rate": learning_rate(recipe, position.step - 1)})
        if due:
            self._checkpoint()

    def _log(self, numbers: dict[str, float]) -> None:
        position = self.position
        if self.processes.first:
            entry = {"step": position.step, "epoch": position.epoch, **numbers}
            training_log.append(self.run.folder, {**entry, "seconds": round(position.seconds, 1)})

    def _checkpoint(self) -> None:
        chances = self.processes.all(torch.get_rng_state())
        if not self.processes.first:
            return
        folder, step = self.run.folder, self.position.step
        self.held_out_loss = held_out_loss(self.model, self.held_out, self.recipe.tokens_per_batch)
        self._log({"held_out": self.held_out_loss})
        self.position.log_bytes, self.position.log_digest = training_log.written(folder)
        training_checkpoint.save_snapshot(folder, self.model, step, kept=self.recipe.averaged)
        training_checkpoint.save_checkpoint(folder, self.model, self.optimizer, self.position, chances)
        if time.monotonic() - self.drawn > REDRAWN:
            training_log.draw(folder, self.lettering)
            self.drawn = time.monotonic()

    def _tell(self, left: float) -> None:
        if self.processes.first:
            position = self.position
            self.report(
                TrainingProgress(
                    position.step,
                    self.recipe.steps,
                    position.epoch,
                    self.mean,
                    self.held_out_loss,
                    position.seconds,
                    left,
                )
            )


def held_out_loss(model: nn.Seq2Seq, examples: Sequence[EncodedPair], tokens: int) -> float:
    """The loss per token, without smoothing and dropout."""
    total, count = 0.0, 0
    sizes = [example.size for example in examples]
    model.eval()
    with torch.inference_mode():
        for rows in epoch_batches(sizes, tokens, seed=0, epoch=0):
            batch = pad([examples[row] for row in rows])
            total += token_losses(model(batch.source, batch.target), batch.following, smoothing=0.0).item()
            count += sum(sizes[row][0] for row in rows)
    model.train()
    return total / count


def _optimizer(model: nn.Seq2Seq, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; only matrices decay. A trained encoder and its embeddings have their own learning rate."""
    trained = [model.source, model.encoder] if recipe.pretrained else []
    slower = {id(parameter) for module in trained for parameter in module.parameters()}
    groups = [
        {
            "params": [
                parameter
                for parameter in model.parameters()
                if (id(parameter) in slower) is slow and (parameter.ndim > 1) is matrix
            ],
            "weight_decay": recipe.weight_decay if matrix else 0.0,
            "share": recipe.pretrained_rate if slow else 1.0,
        }
        for slow in (False, True)
        for matrix in (True, False)
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=recipe.learning_rate,
        betas=(0.9, 0.98),
        eps=1e-9,
        fused=True,
    )
