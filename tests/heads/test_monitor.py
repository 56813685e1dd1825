"""The monitor of a training: its numbers, its steps, and that it changes nothing."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import regard
from recording.families import FAMILIES, inputs_of
from regard import edits
from regard.errors import ArgumentError, DtypeError, RecordingError
from regard.heads import read_monitor


class Small(nn.Module):
    """Two layers of attention with a mask, by torch's own function."""

    def __init__(self, dropout=0.0):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))
        self.dropout = dropout

    def forward(self, x, keep=None):
        for layer in self.layers:
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer(x).chunk(3, -1))
            mask = None if keep is None else keep[:, None, None]
            found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout)
            x = x + found.transpose(1, 2).flatten(2)
        return x


def texts():
    return torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))


def trained(model, run, steps=4, optimizer=None, **options):
    """Train a few steps; with options, under a monitor."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(5)

    def go():
        for _ in range(steps):
            optimizer.zero_grad()
            run(model).backward()
            optimizer.step()

    if not options:
        go()
        return None
    with regard.monitor(model, **options) as monitored:
        go()
    return monitored


# ---- numbers -----------------------------------------------------------------------------------


def information(weights):
    """The mutual information of query and key, as a share of the greatest possible, from a dense matrix."""
    joint = weights.double() / len(weights)
    apart = joint.sum(0, keepdim=True) * joint.sum(1, keepdim=True)
    return torch.special.xlogy(joint, joint / apart).sum() / math.log(min(weights.shape))


def test_numbers_are_those_of_the_matrix():
    model, x = Small(), texts()
    keep = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]).bool()

    def loss(output):
        return (output.square().sum(-1) * keep).sum()  # padding does not count

    with regard.monitor(model, every=1) as monitored:
        loss(model(x, keep)).backward()
    # The same by hand, with dense weights.
    state, wanted = x, []
    for layer in model.layers:
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer(state).chunk(3, -1))
        scores = (q @ k.mT / 2).masked_fill(~keep[:, None, None], -torch.inf)
        output = scores.softmax(-1) @ v
        output.retain_grad()
        wanted.append((scores, output))
        state = state + output.transpose(1, 2).flatten(2)
    loss(state).backward()
    assert [(row["layer"], row["head"]) for row in monitored.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for row in monitored.rows:
        scores = wanted[row["layer"]][0][:, row["head"]].detach()
        weights = scores.softmax(-1)
        entropy = torch.special.entr(weights).sum(-1)
        dense = {
            "entropy": entropy[keep].mean(),
            "score": scores[keep].max(),
            "first": weights[..., 0][keep].mean(),
            "gradient": wanted[row["layer"]][1].grad[:, row["head"]].norm(),
            "information": torch.stack(
                [information(one[real][:, real]) for one, real in zip(weights, keep)]
            ).mean(),
        }
        assert row["kind"] == "encoder"
        assert row["step"] == 0
        for name, number in dense.items():
            assert row[name] == pytest.approx(float(number), rel=1e-5, abs=1e-6), name
    # Over all rows, padding included, the entropy would be another number.
    assert abs(float(entropy.mean()) - float(entropy[keep].mean())) > 1e-3


def attended(q, k):
    """The rows of a monitor for one call with these queries and keys."""

    class Only(nn.Module):
        def forward(self, v):
            return F.scaled_dot_product_attention(q, k, v, scale=1.0)

    with regard.monitor(Only(), every=1) as monitored:
        monitored.model(torch.ones(*k.shape[:3], 2, requires_grad=True)).sum().backward()
    return monitored.rows


def test_information_is_0_for_equal_rows_and_1_for_one_key_each():
    same = torch.zeros(1, 1, 7, 7)
    one_key = same.clone()
    one_key[..., 0] = 60.0
    turned = 60.0 * torch.eye(7).flip(0)[None, None]
    q = torch.cat([same, one_key, turned], 1)  # q kᵀ = q: even rows, a sink, one key for each query
    even, sink, aligned = attended(q, torch.eye(7)[None, None].expand(1, 3, 7, 7))
    assert even["information"] == pytest.approx(0.0, abs=1e-6)
    assert sink["information"] == pytest.approx(0.0, abs=1e-6)
    assert sink["entropy"] == pytest.approx(0.0, abs=1e-6)  # entropy alone cannot tell it from the last
    assert aligned["information"] == pytest.approx(1.0, abs=1e-6)
    assert aligned["entropy"] == pytest.approx(0.0, abs=1e-6)
    (single,) = attended(torch.zeros(2, 1, 1, 3), torch.zeros(2, 1, 5, 3))
    assert single["information"] is None  # one query decides nothing


@pytest.mark.parametrize("name", ["bert", "llama", "gemma2", "gpt_oss", "t5", "bart"])
def test_every_family_has_a_row_for_each_head(name):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, "right")

    with regard.monitor(model, every=1) as monitored, regard.watch(model) as seen:
        model(**inputs)[0].square().mean().backward()
    assert {(row["kind"], row["layer"], row["head"]) for row in monitored.rows} == {
        (call.kind, call.layer, head) for call in seen for head in range(call.heads)
    }
    for row in monitored.rows:
        call = seen.layer(row["layer"], kind=row["kind"])
        found = call.statistics()
        sees = found.lse[:, row["head"]] > -torch.inf
        greatest = (found.lse + found.peak.log())[:, row["head"]][sees].max()
        assert row["score"] <= float(greatest) + 1e-5
        assert 0 <= row["entropy"] <= math.log(call.keys)
        assert row["gradient"] > 0
        assert -1e-5 <= row["information"] <= 1


# ---- nothing changes ---------------------------------------------------------------------------


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, dropout=0.3, batch_first=True)
        self.inner = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.inner(x)


def translator_model():
    torch.manual_seed(3)
    return regard.nn.Seq2Seq(23, 29, width=8, heads=2, encoder_layers=1, decoder_layers=1, dropout=0.3)


def square(model):
    return model(texts()).square().mean()


def own_loss(model):
    source = torch.arange(12).reshape(2, 6) + 3
    return model(source, source + 1).square().mean()


def llama_loss(model):
    return model(**inputs_of(FAMILIES["llama"], "left")).logits.square().mean()


# Bit by bit, random numbers of dropout included; masks of transformers are read in another way.
MODELS = {
    "sdpa": (Small, square),
    "sdpa with dropout": (lambda: Small(0.3), square),
    "torch.nn": (Encoder, square),
    "regard.nn": (translator_model, own_loss),
    "transformers": (lambda: FAMILIES["llama"].build(), llama_loss),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_monitored_training_is_the_same(name):
    build, run = MODELS[name]
    plain, seen = build().train(), build().train()
    trained(plain, run)
    monitored = trained(seen, run, every=2)
    assert {row["step"] for row in monitored.rows} == {0, 2}
    for one, other in zip(plain.parameters(), seen.parameters()):
        assert torch.allclose(one, other, atol=1e-4) if name == "transformers" else torch.equal(one, other)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_is_seen_once(reentrant):
    from torch.utils.checkpoint import checkpoint

    model, x = Encoder().eval(), texts().requires_grad_()

    class Saving(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            for layer in self.model.inner.layers:
                x = checkpoint(layer, x, use_reentrant=reentrant)
            return x

    with regard.monitor(model, every=1) as wanted:
        model(x).square().mean().backward()
    with regard.monitor(Saving(), every=1) as found:
        found.model(x).square().mean().backward()
    assert len(found.rows) == len(wanted.rows) == 4
    order = sorted(found.rows, key=lambda row: (row["layer"], row["head"]))
    for name in ("entropy", "score", "first", "gradient"):
        assert sorted(row[name] for row in order) == pytest.approx(sorted(row[name] for row in wanted.rows))


def hooks_of(model):
    return [
        hook for part in model.modules() for hook in (*part._forward_hooks, *part._forward_pre_hooks)
    ]  # fmt: skip


def test_nothing_is_installed_between_measured_steps_and_after_the_block():
    from torch.optim.optimizer import _global_optimizer_post_hooks as counted

    model, optimizer = Small(), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    fast = torch.backends.mha.get_fastpath_enabled()
    with regard.monitor(model, every=2):
        assert hooks_of(model)
        square(model).backward()
        optimizer.step()
        assert not hooks_of(model)
        square(model).backward()
        optimizer.step()
        assert hooks_of(model)
    assert not hooks_of(model)
    assert not counted
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_an_exception_restores_everything():
    from torch.optim.optimizer import _global_optimizer_post_hooks as counted

    model = FAMILIES["llama"].build()
    before = model.config._attn_implementation
    monitor = regard.monitor(model, every=1)
    with pytest.raises(ZeroDivisionError), monitor:
        raise ZeroDivisionError(llama_loss(model))
    assert model.config._attn_implementation == before
    assert not hooks_of(model)
    assert not counted
    assert not monitor.rows
    with regard.monitor(model, every=1):  # another one can begin
        pass

    failing = Small()
    with pytest.raises(RuntimeError), regard.monitor(failing):
        failing(torch.randn(1, 5, 3))
    assert not torch.overrides._get_current_function_mode_stack()


def test_edits_and_watches_may_begin_and_end_at_any_time():
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with regard.monitor(model, every=2) as monitored:
        for step in range(4):
            with regard.edit(model, edits.uniform(layers=0)), regard.watch(model):
                square(model).backward()
                optimizer.step()  # the monitor stops to see, or begins, inside of the other blocks
            if step == 1:
                with torch.no_grad():
                    model(texts())
    even = [row["entropy"] for row in monitored.rows if row["layer"] == 0]
    assert even == pytest.approx([math.log(5)] * 4, rel=1e-5)
    assert not hooks_of(model)


# ---- steps and rows ----------------------------------------------------------------------------


def test_steps_are_those_of_the_optimizer_of_the_model():
    model, other = Small(), Small()
    foreign = torch.optim.SGD(other.parameters(), lr=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with regard.monitor(model, every=3) as monitored:
        for _ in range(7):
            for _ in range(2):  # gradients of two batches add up
                square(model).backward()
            square(other).backward()
            foreign.step()
            with torch.no_grad():
                model(texts())  # is not training
            optimizer.step()
            optimizer.zero_grad()
    assert monitored.number == 7
    assert [row["step"] for row in monitored.rows] == [step for step in (0, 3, 6) for _ in range(4)]
    assert repr(monitored) == "<monitor of Small: 3 steps, 12 rows>"
    assert monitored.table.columns[:4] == ("step", "kind", "layer", "head")


def test_without_a_torch_optimizer_steps_are_told():
    model = Small()
    monitored = regard.monitor(model, every=2, start=4).open()
    for _ in range(3):
        square(model).backward()
        monitored.step()
    monitored.close()
    assert sorted({row["step"] for row in monitored.rows}) == [4, 6]


def test_a_pass_without_a_backward_pass_has_no_gradient():
    model = Small()
    with regard.monitor(model) as monitored:
        model(texts())
    assert [row["gradient"] for row in monitored.rows] == [None] * 4
    assert all(row["entropy"] > 0 for row in monitored.rows)


def test_rows_go_to_a_file_and_to_any_function(tmp_path):
    logged = []
    monitored = trained(Small(), square, steps=3, every=2, out=tmp_path / "m.csv", log=logged.append)
    read = read_monitor(tmp_path / "m.csv")
    assert len(read) == len(monitored.rows) == 8
    for one, other in zip(read, monitored.rows):
        assert one.keys() == other.keys()
        assert one["kind"] == other["kind"]
        for name in ("step", "layer", "head", "entropy", "score", "first", "gradient", "information"):
            assert one[name] == pytest.approx(other[name], rel=1e-5)
    assert [entry["step"] for entry in logged] == [0, 2]
    last = monitored.rows[-1]
    assert logged[-1]["score/encoder.1.1"] == last["score"]
    assert len(logged[0]) == 1 + 4 * 5
    assert all(isinstance(value, int | float) for value in logged[0].values())


def test_a_resumed_run_continues_its_file(tmp_path):
    file = tmp_path / "m.csv"
    trained(Small(), square, steps=6, every=2, out=file)
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole[:-7], encoding="utf-8")  # killed while it wrote
    trained(Small(), square, steps=2, every=2, out=file, start=4)
    assert [row["step"] for row in read_monitor(file)] == [0] * 4 + [2] * 4 + [4] * 4


def test_a_file_of_an_earlier_version_is_read_and_continued(tmp_path):
    file = tmp_path / "m.csv"
    trained(Small(), square, steps=2, every=1, out=file)
    lines = file.read_text(encoding="utf-8").splitlines()
    old = "".join(line.rpartition(",")[0] + "\n" for line in lines)
    assert old.startswith("step,kind,layer,head,entropy,score,first,gradient\n")
    file.write_text(old, encoding="utf-8")
    assert [row["information"] for row in read_monitor(file)] == [None] * 8
    trained(Small(), square, steps=1, every=1, out=file, start=2)
    read = read_monitor(file)
    assert [row["step"] for row in read] == [0] * 4 + [1] * 4 + [2] * 4
    assert [row["information"] is None for row in read] == [True] * 8 + [False] * 4
    file.write_text(old + "9,encoder,0,0,1,1\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="Got something else in"):
        read_monitor(file)


TOKENS, WIDTH, LENGTH = 17, 16, 12


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.inner = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        return self.head(self.inner(self.embedding(ids) + self.positions, mask=mask, is_causal=True))


def first_above(line, factor):
    """The first step at which a line is above this many times its median at the start; inf for never."""
    start = sorted(line[:5])[2]
    return next((step for step, x in enumerate(line) if x > factor * start), math.inf)


def alarms(rate, seed, steps=50):
    """When the greatest score of all heads had tripled, and when the loss had grown by a quarter.

    The optimizer is that of ``regard train``: AdamW with clipped gradients and a warm-up. The training ends
    when the loss has grown.
    """
    torch.manual_seed(seed)
    model, losses = Decoder(), []
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    with regard.monitor(model, every=1) as monitored:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate * (step + 1) / 80  # the warm-up of a longer run
            half = torch.randint(TOKENS, (16, LENGTH // 2))
            ids = torch.cat([half, half], 1)
            loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            if step >= 5 and losses[-1] > 1.25 * sorted(losses[:5])[2]:
                break
    scores = [
        max(row["score"] for row in monitored.rows if row["step"] == step) for step in range(len(losses))
    ]
    return first_above(scores, 3), first_above(losses, 1.25)


def test_scores_explode_before_the_loss_when_the_learning_rate_is_far_too_high():
    """docs/why.md has the counts of ten seeds, also of other optimizers: with SGD the loss is first."""
    assert alarms(0.003, 0) == (math.inf, math.inf)
    found = [alarms(0.5, seed) for seed in range(4)]
    assert all(math.isfinite(loss) for _, loss in found), found
    assert all(score < loss - 5 for score, loss in found), found


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "3"])
def test_every_is_a_positive_number(every):
    with pytest.raises(ArgumentError, match="every") as raised:
        regard.monitor(Small(), every=every)
    assert raised.value.in_words("zh") != str(raised.value)


def test_what_is_not_a_model_a_step_or_a_function():
    for call, error, says in (
        (lambda: regard.monitor("model"), DtypeError, "needs a PyTorch module. Got str."),
        (lambda: regard.monitor(Small(), log="wandb"), DtypeError, "log must be a function of a dict"),
        (lambda: regard.monitor(Small(), start=-1), ArgumentError, "start"),
    ):
        with pytest.raises(error, match=says) as raised:
            call()
        assert raised.value.in_words("zh") != str(raised.value)


def test_a_model_without_attention_is_named():
    model = nn.Linear(8, 8)
    with pytest.raises(RecordingError, match=r"Got no attention from Linear in step 0.") as raised:
        trained(model, lambda model: model(texts()).sum(), every=1)
    assert raised.value.in_words("zh") != str(raised.value)
    with pytest.raises(RecordingError, match="no attention from Linear"), regard.monitor(model):
        model(texts()).sum().backward()
    assert not hooks_of(model)


def test_a_model_that_hides_its_attention_is_refused_by_name():
    import transformers as hf

    config = hf.BloomConfig(vocab_size=61, hidden_size=24, n_layer=2, n_head=4)
    model = hf.BloomForCausalLM(config)
    says = "Got BloomForCausalLM, which computes its attention itself"
    with pytest.raises(RecordingError, match=says), regard.monitor(model):
        pass
    assert not hooks_of(model)


def test_monitors_do_not_nest():
    model = Encoder()
    with regard.monitor(model):
        for inner in (model, model.inner, nn.Sequential(model)):
            with (
                pytest.raises(RecordingError, match="A model can have only one monitor at a time") as raised,
                regard.monitor(inner),
            ):
                pass
            assert raised.value.in_words("zh") != str(raised.value)
        with regard.monitor(Encoder()):
            pass
    closed = regard.monitor(model)
    with pytest.raises(RecordingError, match=r"Got step\(\) before it was opened"):
        closed.step()
    with closed:
        pass
    with pytest.raises(RecordingError, match="A monitor can be opened only once"), closed:
        pass
    with pytest.raises(RecordingError, match=r"Got step\(\) of a monitor that is closed"):
        closed.step()


def test_files_that_no_monitor_wrote(tmp_path):
    for text, says in (("a,b\n1,2\n", "Got a, b in"), ("", "Got nothing in")):
        (tmp_path / "x.csv").write_text(text, encoding="utf-8")
        with pytest.raises(ArgumentError, match=says):
            read_monitor(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text(
        "step,kind,layer,head,entropy,score,first,gradient\nx,encoder,0,0,1,1,1,1\n", encoding="utf-8"
    )
    with pytest.raises(ArgumentError, match="Got something else in"):
        read_monitor(tmp_path / "x.csv")
