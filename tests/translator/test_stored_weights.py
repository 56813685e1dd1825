import torch

from regard.translator.stored_weights import SCALE, restored_weights, stored_weights


def test_every_weight_is_within_half_a_scale():
    torch.manual_seed(0)
    weights = {"table": torch.randn(37, 19) * torch.logspace(-6, 3, 37)[:, None], "bias": torch.randn(19)}
    weights["table"][5] = 0
    stored = stored_weights(weights)
    found = restored_weights(stored)
    assert found.keys() == weights.keys()
    assert ((found["table"] - weights["table"]).abs() <= 0.5001 * stored["table" + SCALE]).all()
    assert (found["table"][5] == 0).all()
    torch.testing.assert_close(found["bias"], weights["bias"], atol=0, rtol=1e-3)
    assert stored["table"].element_size() == 1


def test_models_in_half_precision_still_load():
    weights = {"table": torch.randn(3, 5).half(), "bias": torch.randn(5).half()}
    found = restored_weights(weights)
    assert all(torch.equal(found[name], weights[name].float()) for name in weights)
