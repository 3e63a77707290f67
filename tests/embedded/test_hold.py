"""Lanes before an archive that can't keep up, on a broker that forgets: large facts are held back, none is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from litehit.facts import FactBatch
from litehit.registry import Registry
from litehit.request import Request
from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog
from service.archive.open_store import open_store
from service.archive.segment import read_table
from service.archive.store import Store
from service.embedded import RETAINED_BYTES, EmbeddedBroker
from service.lag_window import LagWindow
from service.publisher import Publisher, embedded_window_bytes
from service.serve import EMBEDDED_FACTS_BYTES
from service.settings import Settings
from service.topics import TopicLayout
from tests import lanes_harness as harness
from tests.archiver_harness import RunningArchiver
from tests.archiver_stores import LeapingClock, RefusingStore

BLOCKS = 20_000


def requests_with_large_facts(count: int) -> list[Request]:
    """Every second request reads every second block of the one before it, so no two of its hits are neighbours."""
    keys = [np.arange(BLOCKS), np.arange(0, BLOCKS, 2)]
    return [
        Request("chat-a", f"trace-{number}", number, keys[number % 2], len(keys[number % 2]) * harness.BLOCK_TOKENS)
        for number in range(count)
    ]


def facts_in(store: Store) -> list[bytes]:
    catalog = Catalog(store)
    catalog.refresh()
    assert catalog.view.faults == ()
    batches: list[FactBatch] = [
        ArchivedFacts.from_table(read_table(store, info.path)[1]).facts for info in catalog.view.segments
    ]
    return [fact.to_json() for facts in batches for fact in facts]


def registry_with_variants(folder: Path, count: int) -> Registry:
    path = folder / "variants.yaml"
    variants = ", ".join(f"{{name: v{number}, block_bytes: {number + 1}}}" for number in range(count))
    path.write_text(harness.REGISTRY.replace("block_bytes: 1024", f"block_bytes: 1024, variants: [{variants}]"))
    return Registry.load(path)


@pytest.mark.parametrize(("variants", "count"), [(0, 160), (7, 40)])
def test_facts_that_exceed_what_the_broker_keeps_are_all_archived(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, tmp_path: Path, variants: int, count: int
) -> None:
    requests = requests_with_large_facts(count)
    known = registry_with_variants(tmp_path, variants)
    assert known.most_facts == 1 + variants
    expected = harness.straight_facts(requests, known)["chat-a"]
    assert known.most_facts * sum(map(len, expected)) > RETAINED_BYTES
    settings = settings.model_copy(update={"segment_rows": 2})
    store, clock = RefusingStore(settings.store), LeapingClock()
    store.refuse()
    with RunningArchiver(settings, broker.bootstrap, layout, store=store, clock=clock) as archive:
        window = LagWindow(EMBEDDED_FACTS_BYTES, lambda partitions: archive.archiver.status().consumed(partitions))
        held = threading.Event()

        def hold() -> bool:
            full = window.is_full()
            if full:
                held.set()
            return full

        # All that may stand unprocessed does so when the lanes begin.
        window_bytes = embedded_window_bytes(known.most_facts)
        publisher = Publisher(settings, broker.bootstrap, window_bytes)
        rest = iter([(request.instance_id, harness.event(request)) for request in requests])
        sent = 0
        while sent <= window_bytes:
            instance_id, event = next(rest)
            publisher.send([(instance_id, event, {})])
            sent += len(event)
        publishing = threading.Thread(target=publish, args=(publisher, rest))
        with harness.RunningWorker(settings, broker.bootstrap, layout, known, hold=hold, facts_window=window) as lanes:
            publishing.start()
            archive.wait_until(lambda now: any(one.trouble for one in now.partitions))
            assert held.wait(60)
            store.allow()
            clock.leap(1.0)
            publishing.join(60)
            assert not publishing.is_alive()
            lanes.wait_until(lambda now: sum(lane.next_offset or 0 for lane in now.lanes) == count)
        facts = count * known.most_facts
        archive.wait_until(lambda now: sum(one.next_offset for one in now.partitions) == facts)
    archived = facts_in(open_store(settings.store))
    assert len(archived) == facts
    assert archived[:: known.most_facts] == expected


def publish(publisher: Publisher, records: Iterable[tuple[str, bytes]]) -> None:
    publisher.send((instance_id, event, {}) for instance_id, event in records)
    publisher.finish()
