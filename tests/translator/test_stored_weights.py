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


def test_four_bits_are_within_half_a_scale_and_take_half_the_space():
    torch.manual_seed(1)
    weights = {"few": torch.randn(37, 18), "odd": torch.randn(5, 7), "other": torch.randn(37, 18)}
    weights["few"][4] = 0
    stored = stored_weights(weights, four_bits=["few", "odd"])
    assert stored["few"].shape == (37, 9)
    assert stored["few"].element_size() == 1
    assert stored["odd"].shape == (5, 7)  # an odd number of channels does not fit into whole bytes
    found = restored_weights(stored)
    for name in weights:
        assert found[name].shape == weights[name].shape
        assert ((found[name] - weights[name]).abs() <= 0.5001 * stored[name + SCALE]).all()
    assert (found["few"][4] == 0).all()
    worst = (found["few"] - weights["few"]).abs().max(-1).values
    assert (worst[worst > 0] > 0.1 * stored["few" + SCALE].flatten()[worst > 0]).any()  # it is 4 bits, not 8
