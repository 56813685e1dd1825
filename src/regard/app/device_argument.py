"""Devices on the command line: ``auto``, ``cpu``, ``cuda:1``."""

from __future__ import annotations

import os

from regard.errors import DeviceError

AUTO = "auto"


def device_of(name: str) -> str:
    """The name of a device, tried before anything is loaded; ``auto`` uses a GPU if there is one."""
    import torch

    if name == AUTO:
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    try:
        found = float(
            torch.ones(1, device=name)
        )  # fails on the device "meta", which has shapes but no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DeviceError(
            "--device must be a device that torch has on this machine.",
            got="{name!r}: {error}",
            do="Try auto, cpu or cuda; regard doctor lists what is available.",
            name=name,
            error=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error
    assert found == 1.0
    return name
