"""Experiments on a real model. docs/edits.md tells what came out; bounds leave room for rounding."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
smollm2 = pytest.importorskip("real.smollm2")
experiments = pytest.importorskip("real.experiments")


@pytest.fixture(scope="module")
def model_and_tokenizer():
    return smollm2.load()


def test_without_induction_heads_repetition_is_not_foreseen(model_and_tokenizer):
    found = experiments.induction(*model_and_tokenizer)
    print(found)
    rise = found.without - found.plain
    of_others = sum(found.others) / len(found.others) - found.plain
    assert rise > 3
    assert rise > 1.8 * of_others


def test_mary_and_john(model_and_tokenizer):
    found = experiments.mary_and_john(*model_and_tokenizer)
    print(found.looks, list(found.effects.strongest(12)))
    assert found.effects.before > 4  # the model says Mary
    assert found.effects.grid().shape == (30, 9)
    assert found.looks[0][0] == (23, 3)
    assert found.looks[0][1] < -2


def test_blocking_the_needle_for_the_heads_that_look_at_it_breaks_the_answer(model_and_tokenizer):
    found = experiments.needle(*model_and_tokenizer)
    print(found)
    assert found.plain > 0.5
    assert found.retrieval[0][1] > 0.9
    assert found.blocked < 0.1 * found.plain
    assert min(found.others) > 0.8 * found.plain


def test_the_last_token_reads_the_subject_in_the_upper_layers(model_and_tokenizer):
    found = experiments.knock_out(*model_and_tokenizer)
    print(found)
    assert len(found.facts) == 20
    by_window = dict(zip(found.windows, found.kept))
    assert by_window[18, 24] < 0.4
    assert by_window[21, 27] < 0.4
    assert by_window[0, 6] > 0.6
    assert by_window[24, 30] > 0.8


def test_eviction_keeps_mass_and_costs_loss(model_and_tokenizer):
    found = experiments.eviction(*model_and_tokenizer)
    print(found.plain, list(found.found.means), found.losses)
    kept = {(row["policy"], row["budget"]): row["kept"] for row in found.found.means}
    for budget in found.found.budgets:
        assert all(kept[policy, budget] <= kept["oracle", budget] + 1e-9 for policy in found.found.policies)
    for policy in found.found.policies:
        assert kept[policy, 0.1] < kept[policy, 0.25] < kept[policy, 0.5]
    assert found.losses["oracle", 0.5] < found.plain + 0.2
    assert found.losses["norm", 0.1] > found.plain


MEASURE = """
import sys, torch
sys.path.insert(0, {tests!r})
import regard
from regard import masks
from real import smollm2
torch.set_num_threads(2)
model, tokenizer = smollm2.load()
ids = smollm2.long_text(tokenizer, 8192)
with torch.inference_mode(), regard.watch(model.model) as seen:
    model.model(ids, use_cache=False)
region = masks.span(900, 916)
found = regard.heads.mass(seen, {{"sinks": masks.prefix(4), "local": masks.window(64, 0), "needle": region}})
dense = seen[20].weights(4, columns=slice(900, 916)).double().sum(-1)
error = (seen[20].mass(region)[0, 4].double() - dense).abs().max().item()
status = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20
print(len(found), error, peak)
"""


def test_mass_of_all_heads_over_8192_tokens_in_below_3_gb():
    tests = str(Path(__file__).parent.parent)
    run = subprocess.run(
        [sys.executable, "-c", MEASURE.format(tests=tests)], capture_output=True, text=True, check=True
    )
    heads, error, peak = map(float, run.stdout.split()[-3:])
    print(f"mass of {heads:.0f} heads, 8,192 tokens: error {error:.1e}, {peak:.2f} GB")
    assert heads == 270
    assert error < 1e-6
    assert peak < 3


def test_importance_ranks_heads_as_ablation_does(model_and_tokenizer):
    found = experiments.importance_and_ablation(*model_and_tokenizer)
    print(found.correlation)
    assert len(found.heads) == 270
    assert found.correlation > 0.5  # 0.66 when this was written
