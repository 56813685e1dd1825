"""List what the catalogue lacks, as lines of JSON to complete, and what it has too much."""

from __future__ import annotations

import json
import sys

from regard.app.languages.catalogue import FILES
from regard.app.languages.templates import of_package


def compare() -> tuple[dict[str, str], list[str]]:
    """Templates without Chinese, with the file that has them; and Chinese without a template."""
    known = json.loads(FILES[0].read_text(encoding="utf-8"))
    wanted = of_package()
    missing = {template: file for template, file in wanted.items() if template not in known}
    return missing, [template for template in known if template not in wanted]


def main() -> int:
    """Print both; 1 if there are any."""
    missing, stale = compare()
    for template in missing:
        print(f' {json.dumps(template, ensure_ascii=False)}: "",')
    for template in stale:
        print(f"stale: {template}")
    print(f"{len(missing)} missing, {len(stale)} stale", file=sys.stderr)
    return 1 if missing or stale else 0


if __name__ == "__main__":
    sys.exit(main())
