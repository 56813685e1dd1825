"""Nothing of n×n elements exists while a model is watched."""

import gc

import pytest
import torch
import transformers as hf
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from recording.families import GROUPED, SMALL

N = 2048


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation made."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.untyped_storage().nbytes() // max(1, tensor.element_size()))
        return made


def bert():
    config = hf.BertConfig(**{**SMALL, "max_position_embeddings": N})
    return hf.BertModel(config).eval()


def llama():
    config = hf.LlamaConfig(**{**GROUPED, "max_position_embeddings": N})
    return hf.LlamaModel(config).eval()


@pytest.mark.parametrize("statistics", [False, True])
@pytest.mark.parametrize("padding", ["none", "left", "right"])
@pytest.mark.parametrize("build", [bert, llama])
@torch.no_grad()
def test_no_matrix_is_made(build, padding, statistics):
    model = build()
    ids = torch.randint(3, 61, (2, N))
    keep = torch.ones_like(ids)
    if padding != "none":
        keep[1, slice(0, 99) if padding == "left" else slice(-99, None)] = 0
    with Largest() as largest, regard.watch(model, statistics=statistics) as seen:
        model(input_ids=ids, attention_mask=keep)
    # A tile of scores is below a quarter of the matrix of one head, and there are 2 × 4 of them.
    assert largest.size < N * N
    assert len(seen) == 2
    assert seen.nbytes < N * N


@torch.no_grad()
def test_the_matrix_would_be_noticed():
    model = llama()
    model.set_attn_implementation("eager")
    with Largest() as largest:
        model(input_ids=torch.randint(3, 61, (1, N)))
    assert largest.size >= N * N


@torch.no_grad()
def test_rows_of_a_long_text_are_computed_alone():
    model = llama()
    with regard.watch(model) as seen:
        model(input_ids=torch.randint(3, 61, (1, N)))
    with Largest() as largest:
        rows = seen[1].weights(3, rows=slice(1000, 1004))
    assert rows.shape == (4, N)
    assert rows.sum(-1).allclose(torch.ones(4))
    # Views of Q and K are handed out whole, but nothing larger than them is made.
    assert largest.size <= seen[1].q.numel()


def held():
    """Bytes of all memory that any tensor of this process refers to."""
    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter):
            storages[thing.untyped_storage().data_ptr()] = thing.untyped_storage().nbytes()
    return sum(storages.values())


@pytest.mark.parametrize(
    "options", [{}, {"statistics": True}, {"layers": [0]}, {"dtype": torch.float16}], ids=str
)
@torch.no_grad()
def test_nothing_else_of_the_model_is_kept_alive(options):
    """Not what Q is a view of, not the output, not what was not wanted."""
    model = llama()
    ids = torch.randint(3, 61, (2, N))
    model(input_ids=ids)
    before = held()
    with regard.watch(model, **options) as seen:
        model(input_ids=ids)
        while_running = held() - before
    after = held() - before
    assert seen.nbytes <= after < seen.nbytes * 1.05 + 50_000
    assert while_running < seen.nbytes * 1.05 + 50_000
