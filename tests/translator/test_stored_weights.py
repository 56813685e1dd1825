import pytest
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


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7])
def test_fewer_bits_are_within_half_a_scale_and_take_as_much_less_space(bits):
    torch.manual_seed(bits)
    weights = {"few": torch.randn(37, 24), "odd": torch.randn(5, 7), "cube": torch.randn(3, 5, 16)}
    weights["few"][4] = 0
    stored = stored_weights(weights, bits=bits)
    assert stored["few"].shape == (37, bits, 3)
    assert stored["cube"].shape == (3, 5, bits, 2)
    assert stored["few"].element_size() == 1
    assert stored["odd"].shape == (5, 7)  # 7 channels do not fit into whole bytes
    found = restored_weights(stored)
    largest = 2 ** (bits - 1) - 1
    for name in weights:
        assert found[name].shape == weights[name].shape
        steps = found[name] / stored[name + SCALE].clamp(min=1e-30)
        torch.testing.assert_close(steps, steps.round(), atol=1e-4, rtol=0)
        assert steps.abs().max().round() == (127 if name == "odd" else largest)
        assert ((found[name] - weights[name]).abs() <= 0.5001 * stored[name + SCALE]).all()
    assert (found["few"][4] == 0).all()
