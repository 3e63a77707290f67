"""The facts CSV (SPEC section 6), streamed in both directions."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError

from litehit.errors import FactsError
from litehit.facts import FactBatch
from litehit.facts_text import facts_text
from litehit.text_kernels import texts_of
from schemas.fact import RequestFact

FACTS_FILE_NAME = "litehit_facts.csv"
HEADER = "trace_id,instance_id,timestamp_ns,input_token_len,block_size_tokens,block_bytes,hit_curve"

_COLUMNS = HEADER.split(",")
_WRITTEN_BY = "give a facts CSV, as `litehit replay` and `litehit export` write it"
_BATCH_ROWS = 4096
_GLUE = texts_of(("", ",", ",", ",", ",", ",", ',"[', ']"\n'))
_NEEDS_QUOTES = re.compile(r'[,"\r\n]').search
# Of a field that does not begin with a quote csv takes any quote for a character, where CSV allows none.
_STRAY_QUOTE = re.compile(r'(?:(?:"(?:[^"]|"")*"|[^",]*),)*[^",]+"').match
# int() alone takes blanks, underscores, leading zeros and other alphabets' digits.
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}").fullmatch
_CURVE = TypeAdapter(tuple[tuple[int, int], ...], config={"strict": True})


def write_header(sink: BinaryIO) -> None:
    """Write the header line."""
    sink.write(f"{HEADER}\n".encode())


def write_rows(sink: BinaryIO, facts: FactBatch) -> None:
    """Write one line for each fact."""
    text, _ = facts_text(facts, _GLUE, _fields)
    sink.write(text.data)


def read_facts(file: BinaryIO, source: str) -> Iterator[FactBatch]:
    """Read a facts CSV in batches.

    Args:
        file: the file, opened for bytes.
        source: its name, for errors.

    Raises:
        FactsError: the header is another, or a row is malformed; names the row, counted from 1 with the header, and
            what is wrong with it. Batches before it have been given out by then.
    """
    # The longest real curves pass csv's limit of 128 Ki characters; this lifts it for the process.
    csv.field_size_limit(2**31 - 1)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    lines: list[str] = []  # of the row that is being read
    rows = csv.reader(_noting(text, lines), strict=True)
    number = 0
    batch: list[RequestFact] = []
    try:
        for number, row in enumerate(rows, start=1):
            if number == 1:
                _check_header(row)
            else:
                batch.append(_fact(row, lines))
            lines.clear()
            if len(batch) == _BATCH_ROWS:
                yield FactBatch.from_facts(batch)
                batch = []
        if number == 0:
            raise ValueError(f"the file is empty; it must begin with {HEADER}")
    except (csv.Error, UnicodeDecodeError) as error:
        hint = "" if number else f"; {_WRITTEN_BY}"
        raise FactsError(f"{source}: row {number + 1}: is no CSV in UTF-8 ({error}){hint}") from None
    except ValueError as error:
        raise FactsError(f"{source}: row {max(number, 1)}: {error}") from None
    except OSError as error:  # of a compressed file that is torn or none
        raise FactsError(
            f"{source}: cannot be read beyond row {number} ({error}); see that it is whole, and what its name says"
        ) from None
    finally:
        if not file.closed:  # by a caller that read no further
            text.detach()  # the file is the caller's to close
    if batch:
        yield FactBatch.from_facts(batch)


def _noting(lines: Iterable[str], noted: list[str]) -> Iterator[str]:
    for line in lines:
        noted.append(line)
        yield line


def _fields(values: Sequence[str]) -> Sequence[str]:
    if not _NEEDS_QUOTES("".join(values)):
        return values
    return ['"' + value.replace('"', '""') + '"' if _NEEDS_QUOTES(value) else value for value in values]


def _check_header(row: Sequence[str]) -> None:
    if row != _COLUMNS:
        raise ValueError(f"the header is {','.join(row)[:200]!r}; it must be {HEADER}; {_WRITTEN_BY}")


def _fact(row: Sequence[str], lines: Sequence[str]) -> RequestFact:
    if len(row) != len(_COLUMNS):
        raise ValueError(f"has {len(row)} fields; it must have {len(_COLUMNS)}")
    if any('"' in field for field in row) and _STRAY_QUOTE("".join(lines)):
        raise ValueError(
            "has a quote inside a field that does not begin with one; quote the field and double the quote"
        )
    trace_id, instance_id, *numbers, curve = row
    integers = [_integer(name, text) for name, text in zip(_COLUMNS[2:6], numbers, strict=True)]
    try:
        values = (trace_id, instance_id, *integers, _CURVE.validate_json(curve))
        return RequestFact.model_validate(dict(zip(_COLUMNS, values, strict=True)))
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        field = _COLUMNS[-1] if error.title != RequestFact.__name__ else ".".join(map(str, details["loc"]))
        message = details["msg"].removeprefix("Value error, ")
        raise ValueError(f"{field}: {message} (got {str(details['input'])[:60]!r})" if field else message) from None


def _integer(name: str, text: str) -> int:
    if not _PLAIN_INTEGER(text):
        raise ValueError(f"{name} = {text[:60]!r} is no plain 64-bit integer")
    return int(text)
