"""Facts as they are written, in every form."""

from __future__ import annotations

import io

from litehit.facts import FactBatch
from litehit.facts_csv import write_rows


def rows_of(facts: FactBatch) -> bytes:
    """Rows of a CSV file."""
    sink = io.BytesIO()
    write_rows(sink, facts)
    return sink.getvalue()
