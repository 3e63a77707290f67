from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import litehit.core
from litehit.batch_kernel import process

PACKAGE = Path(litehit.core.__file__).parent

# Block 0 would be found without the table, as the neighbour of no block.
PROGRAM = """
from litehit.core import LiteHit
core = LiteHit()
for request in ([9], [1, 2], [1, 2]):
    curve = core.process_request(request)
print(curve)
"""


def test_a_changed_callee_in_another_file_is_compiled_anew(tmp_path: Path) -> None:
    """The cache of a kernel must not outlive the sources of the kernels it calls."""
    shutil.copytree(PACKAGE, tmp_path / "litehit", ignore=shutil.ignore_patterns("__pycache__"))

    def run() -> str:
        # The copy in the working folder is found before the installed package.
        done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run() == "((1, 2),)"
    table = tmp_path / "litehit" / "key_table.py"
    before = table.read_text()
    changed = before.replace("return block\n", "return np.int64(-1)\n", 1)
    assert changed != before
    table.write_text(changed)
    assert run() == "()"  # no key is ever found


def test_kernels_run_without_the_interpreter_lock() -> None:
    assert process.targetoptions["nogil"] is True  # type: ignore[attr-defined]
