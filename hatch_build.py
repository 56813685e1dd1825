"""What is added when a wheel is built or regard is installed from source: the compiled row pass."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Writes what is built outside the sources and includes it in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the row pass. Where that is not possible, the wheel is built without it."""
        self.folder = Path(tempfile.mkdtemp())
        sys.path.insert(0, self.root)
        from build_row_pass import add_to_build

        failed = add_to_build(Path(self.root), self.folder, version, build_data)
        if failed:
            self.app.display_warning(f"Without the compiled row pass: {failed}")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what the wheel was made from."""
        shutil.rmtree(self.folder, ignore_errors=True)
