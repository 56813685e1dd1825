"""List what the catalogues lack, as lines of JSON to complete, and what they have too much."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from regard.app.languages import catalogue, helping
from regard.app.languages.asked import of_help
from regard.app.languages.templates import of_package


def compare() -> tuple[dict[str, str], list[str]]:
    """Templates of errors without Chinese, with the file that has them; and Chinese without a template."""
    return _against(of_package(), catalogue.FILES[0])


def compare_help() -> tuple[dict[str, str], list[str]]:
    """Texts of help without Chinese, with the command that has them; and Chinese without a text."""
    from regard.app.main import main as program

    return _against(of_help(program), helping.FILE)


def _against(wanted: Mapping[str, str], file: Path) -> tuple[dict[str, str], list[str]]:
    known = json.loads(file.read_text(encoding="utf-8"))
    missing = {text: where for text, where in wanted.items() if text not in known}
    return missing, [text for text in known if text not in wanted]


def main() -> int:
    """Print both, of both catalogues; 1 if there are any."""
    found = {catalogue.FILES[0].name: compare(), helping.FILE.name: compare_help()}
    for name, (missing, stale) in found.items():
        for text in missing:
            print(f' {json.dumps(text, ensure_ascii=False)}: "",')
        for text in stale:
            print(f"stale: {text}")
        print(f"{name}: {len(missing)} missing, {len(stale)} stale", file=sys.stderr)
    return 1 if any(missing or stale for missing, stale in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
