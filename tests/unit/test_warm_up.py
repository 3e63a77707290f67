"""What is compiled in advance is all that reading and analysing needs."""

from __future__ import annotations

import subprocess
import sys

COMPILED_LATER = """
import sys
import numpy as np
from litehit.request import Request
from service import formats, warm_up
from service.event_json import event_json
from service.event_protobuf import protobuf_event
from service.formats.contents import Contexts

def compiled():
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("litehit", "service")]
    kernels = {id(one): one for module in ours for one in vars(module).values() if hasattr(one, "signatures")}
    return {one.__name__: len(one.signatures) for one in kernels.values()}

requests = [Request("a", f"t{n}", n, np.arange(n + 1, dtype=np.int64), 4 * n + 4) for n in range(9)]
events = {
    "native": [event_json(one) for one in requests],
    "native-protobuf": [protobuf_event(one) for one in requests],
}
warm_up.warm_up()
before = compiled()
for name, records in events.items():
    contents = formats.get(name).parse_many(records, Contexts.of_lines(None, range(9)))
    assert not contents.others, contents.others
assert compiled() == before, {name: count for name, count in compiled().items() if before.get(name) != count}
assert sum(before.values()) > 20
"""


def test_no_record_waits_for_a_kernel_after_it() -> None:
    subprocess.run([sys.executable, "-c", COMPILED_LATER], check=True, timeout=300)
