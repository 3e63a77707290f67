"""What `litehit publish` says of files that are not whole or not right, and what of them is on the topic."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from typer.testing import CliRunner, Result

from service.cli.app import app
from service.embedded import EmbeddedBroker
from service.settings import Settings
from service.topics import TopicLayout
from tests import lanes_harness as harness

Publish: TypeAlias = Callable[..., Result]


def line(number: int, **changes: object) -> bytes:
    fields = {"type": "request", "instance_id": "a", "timestamp_ns": number, "block_keys": [number]}
    return json.dumps(fields | changes).encode() + b"\n"


@pytest.fixture
def publish(broker: EmbeddedBroker, settings: Settings, layout: TopicLayout) -> Publish:
    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["publish", *map(str, arguments), "--embedded", "--store", settings.store])

    return run


@pytest.fixture
def on_topic(broker: EmbeddedBroker, settings: Settings, layout: TopicLayout) -> Callable[[], int]:
    return lambda: len(harness.read_topic(broker.bootstrap, settings.requests_topic, layout.partitions))


def test_a_cut_file_is_told_with_what_is_on_the_topic(
    publish: Publish, on_topic: Callable[[], int], tmp_path: Path
) -> None:
    path = tmp_path / "cut.jsonl.gz"
    # No lanes read the topic, which holds little unread: most of the file is blank.
    blank = (b" " * 999 + b"\n") * 2200
    path.write_bytes(gzip.compress(b"".join(map(line, range(30))) + blank + line(30))[:-20])
    done = publish(path)
    assert done.exit_code == 1
    assert re.search(
        rf"{path}: cannot be read beyond line 2\d\d\d .*; the topic has the 30 records before that: mend the file",
        str(done.exception),
    )
    assert on_topic() == 30


@pytest.mark.parametrize("content", [b"", b"\n \n"])
@pytest.mark.parametrize("format_name", ["auto", "native"])
def test_a_file_without_records_fails(content: bytes, format_name: str, publish: Publish, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    done = publish(path, "--format", format_name)
    assert done.exit_code == 1
    assert f"{path}: holds no record" in str(done.exception)


def test_one_record_that_is_no_request_is_one(publish: Publish, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(line(0))
    assert publish(path).stdout.startswith("published 1 record to ")
    path.write_bytes(line(0) + line(1, block_keys=[0.5]))
    done = publish(path)
    assert done.exit_code == 0
    assert "warning: 1 of them is not of format native and will be a dead letter; the first: line 2: " in done.stderr
    path.write_bytes(line(0) + line(1, block_keys=[0.5]) * 2)
    assert "warning: 2 of them are not of format native and will be dead letters; the first: " in publish(path).stderr
