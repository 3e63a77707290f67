"""The README's blocks that tests run."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """The code block under the comment `<!-- tested: name -->`."""
    found = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found is not None, f"the README has no tested block {name!r}"
    return found[1]
