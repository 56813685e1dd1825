"""What is added when a wheel is built or regard is installed from source: joined JavaScript, the row pass."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Writes what is built outside the sources and includes it in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Join the scripts and compile the row pass; without a compiler, the wheel has no row pass."""
        self.folder = Path(tempfile.mkdtemp())
        sys.path[:0] = [self.root, str(Path(self.root) / "src")]
        from build_row_pass import add_to_build

        failed = add_to_build(Path(self.root), self.folder, version, build_data)
        if failed:
            self.app.display_warning(f"Without the compiled row pass: {failed}")
        if version != "editable":  # an editable installation reads the modules themselves
            self._join_scripts(build_data)

    def _join_scripts(self, build_data: dict[str, Any]) -> None:
        from regard.views.script_bundle import built_scripts

        for name, text in built_scripts().items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            build_data["force_include"][str(file)] = f"regard/views/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what the wheel was made from."""
        shutil.rmtree(self.folder, ignore_errors=True)
