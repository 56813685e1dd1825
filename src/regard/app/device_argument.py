"""Devices on the command line: ``auto``, ``cpu``, ``cuda:1``."""

from __future__ import annotations

import os

from regard.errors import DeviceError

AUTO = "auto"


def device_of(name: str) -> str:
    """The device that is meant, tried before anything is loaded; ``auto`` takes a GPU if there is one."""
    import torch

    if name == AUTO:
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    try:
        found = float(torch.ones(1, device=name))  # the device "meta" has a shape and no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DeviceError(
            "--device is one that torch has on this machine.",
            got="{name!r}: {error}",
            do="Try auto, cpu or cuda; regard doctor says what there is.",
            name=name,
            error=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error
    assert found == 1.0
    return name
