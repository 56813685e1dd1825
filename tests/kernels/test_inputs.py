"""One test per message: what must hold, what was given, what to do."""

import numpy as np
import pytest
import torch

import regard
from parity import tensors
from regard import biases, masks
from regard.errors import ArgumentError, DeviceError, DtypeError, MaskError, RegardError, ShapeError

Q, K, V = tensors(2, heads=4, key_heads=2, queries=5, keys=7, dtype=torch.float32)
NAN = float("nan")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"q": Q.numpy()}, DtypeError, "Got q = ndarray.*regard.reference"),
        ({"k": None}, DtypeError, "Got k = NoneType"),
        ({"q": Q.long()}, DtypeError, r"Got q.dtype = torch.int64. Convert it, for example q.float\(\)"),
        ({"v": V.to(torch.complex64)}, DtypeError, "Got v.dtype = torch.complex64"),
        ({"k": K.double()}, DtypeError, "same dtype. Got q.dtype = torch.float32, k.dtype = torch.float64"),
        ({"k": K.to("meta")}, DeviceError, "Got q on cpu, k on meta"),
        ({"q": Q[0, 0]}, ShapeError, "same number of axes"),
        ({"q": Q[0, 0, 0], "k": K[0, 0, 0], "v": V[0, 0, 0]}, ShapeError, "same number of axes"),
        ({"q": Q[..., :3]}, ShapeError, r"channels \(q = 3\). Got k = 5"),
        ({"v": V[:, :, :6]}, ShapeError, r"as many values as keys \(keys = 7\). Got values = 6"),
        ({"q": Q[:, :3]}, ShapeError, r"heads = 3\). Got key heads = 2"),
        ({"v": V[:, :1]}, ShapeError, "value heads = 1"),
        ({"k": K.repeat(2, 1, 1, 1)[:3], "v": V.repeat(2, 1, 1, 1)[:3]}, ShapeError, "leading axes"),
        ({"mask": "causal"}, MaskError, r"Got str.*masks.parse"),
        ({"mask": torch.ones(5, 6, dtype=torch.bool)}, ShapeError, r"keys = 7\). Got shape \(5, 6\)"),
        (
            {"mask": torch.ones(2, 5, 7, dtype=torch.bool)},
            ShapeError,
            r"Got \(2, 5, 7\). A mask per batch element.*mask\[:, None\]",
        ),
        ({"mask": torch.ones(3, 1, 5, 7, dtype=torch.bool)}, ShapeError, "must broadcast to"),
        ({"mask": torch.ones(9, 2, 1, 5, 7, dtype=torch.bool)}, ShapeError, "must broadcast to"),
        ({"mask": masks.padding(lengths=[1, 2, 3])}, ShapeError, "must broadcast to"),
        ({"mask": torch.tensor([[NAN] * 7] * 5)}, MaskError, "A mask must not contain NaN"),
        ({"mask": torch.full((5, 7), torch.inf)}, MaskError, r"not contain \+inf"),
        ({"mask": torch.full((5, 7), 3)}, DtypeError, "int64"),
        ({"mask": torch.ones(5, 7, dtype=torch.bool, device="meta")}, DeviceError, "mask on meta"),
        ({"bias": torch.zeros(5, 6)}, ShapeError, r"keys = 7\). Got shape"),
        ({"bias": torch.zeros(3, 5, 7)}, ShapeError, "heads = 4"),
        ({"bias": torch.zeros(3, 1, 5, 7)}, ShapeError, "must broadcast to"),
        ({"bias": torch.ones(5, 7, dtype=torch.bool)}, DtypeError, "bool tensor is a mask"),
        ({"bias": 3.0}, DtypeError, "Got float"),
        ({"bias": biases.alibi(3)}, ShapeError, r"heads = 4\). Got 3 heads"),
        ({"bias": torch.zeros(5, 7, device="meta")}, DeviceError, "bias on meta"),
        ({"softcap": 0.0}, ArgumentError, "softcap = 0"),
        ({"softcap": -1.0}, ArgumentError, "above 0"),
        ({"scale": NAN}, ArgumentError, "scale"),
        ({"dropout": 1.0}, ArgumentError, "below 1"),
        ({"dropout": -0.1}, ArgumentError, "probability"),
        ({"sinks": torch.zeros(2)}, ShapeError, r"heads = 4\). Got shape \(2,\)"),
        ({"sinks": [0.0] * 4}, DtypeError, "Got list"),
    ],
)
def test_each_message(change, error, says):
    arguments = {"q": Q, "k": K, "v": V, **change}
    with pytest.raises(error, match=says) as caught:
        regard.attention(arguments.pop("q"), arguments.pop("k"), arguments.pop("v"), **arguments)
    assert isinstance(caught.value, RegardError)


def test_errors_are_also_the_built_in_ones():
    with pytest.raises(ValueError, match="channels"):
        regard.attention(Q[..., :3], K, V)
    with pytest.raises(TypeError, match="torch tensors"):
        regard.attention_weights(np.zeros((2, 2)), K)


def test_inputs_are_left_as_they_were():
    q, k, v = tensors(2, queries=80, dtype=torch.float32)
    copies = [x.clone() for x in (q, k, v)]
    mask = torch.randn(80, 80)
    mask_copy = mask.clone()
    regard.attention(q, k, v, mask=mask, softcap=3.0)
    assert all(torch.equal(a, b) for a, b in zip((q, k, v, mask), (*copies, mask_copy)))
