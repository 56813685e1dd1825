"""Adds the joined JavaScript to the wheel, so that no user's machine has to join it."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Writes the joined scripts outside the sources and includes them in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Join the scripts. An editable install reads the modules themselves."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from regard.views.script_bundle import built_scripts

        self.folder = Path(tempfile.mkdtemp())
        for name, text in built_scripts().items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            build_data["force_include"][str(file)] = f"regard/views/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the copies that the wheel was made from."""
        if version != "editable":
            shutil.rmtree(self.folder, ignore_errors=True)
