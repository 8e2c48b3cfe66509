"""Documentation that names tests names ones that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_test_that_the_table_names_exists() -> None:
    table = (ROOT / "docs" / "preemption-tests.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(?:[A-Z]\w+\.)?([A-Z]\w+|test_\w+|tools/\w+)`", table))
    assert len(names) > 30
    tests = "".join(file.read_text(encoding="utf-8")
                    for suffix in ("cpp", "py") for file in (ROOT / "tests").rglob(f"*.{suffix}"))
    for name in names:
        if name.startswith("tools/"):
            assert (ROOT / name).exists(), name
        else:
            assert re.search(rf"\b{name}\b", tests), name
