"""The facts themselves, in order of their offsets, as of one moment: segments, then what is in none yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from service.api.open_facts import OpenFacts, OpenTail
from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog, CatalogView
from service.archive.chain import Chain
from service.archive.reader import FactFilter, read_chain
from service.archive.segment import ChainKey


@dataclass(frozen=True, slots=True)
class PinnedChain:
    """The facts of a chain at one moment.

    Attributes:
        chain: its segments.
        tail: what is in none of them, and maybe some of what is.
    """

    chain: Chain
    tail: OpenTail

    @property
    def end_offset(self) -> int:
        """Behind the last fact of both."""
        return max(_end(self.chain), self.tail.end_offset)


class FactLog:
    """Reads facts from the store and from the open tails of this process.

    Args:
        catalog: the store's segments, kept up to date by others; it may be a little behind the tails.
        tails: hears of what is in no segment yet.
    """

    def __init__(self, catalog: Catalog, tails: OpenFacts) -> None:
        self._catalog = catalog
        self._tails = tails
        # To look again at one chain without waiting for a look at all of them.
        self._own_catalog = Catalog(catalog.store)

    def pin(self) -> list[PinnedChain]:
        """What there is now: by generation in order of appearance, then partition.

        What was pinned stays readable, but for what the operator lets expire.

        Raises:
            StoreError: the store can't be reached.
        """
        # The tails first: what they have given up by then is in the store.
        tails = self._tails.tails()
        chains = dict(self._catalog.view.chains)
        for key, tail in tails.items():
            known = chains.get(key, Chain(key))
            chains[key] = self._look(key) if _end(known) < tail.first_offset else known
        pinned = [PinnedChain(chain, tails.get(key, OpenTail())) for key, chain in chains.items()]
        generations = _generations(chains, tails)
        return sorted(
            (one for one in pinned if one.end_offset or one.chain.damaged_end),
            key=lambda one: (generations.index(_generation(one.chain.key)), one.chain.key.partition),
        )

    def read(self, pinned: PinnedChain, wanted: FactFilter) -> Iterator[ArchivedFacts]:
        """The wanted facts of a chain in offset order; batches are not empty.

        Raises:
            FactsExpired: facts were removed by retention before they were read.
            SegmentError: a file is damaged.
            StoreError: the store can't be reached.
        """
        position = wanted.from_offset or 0
        for rows in read_chain(self._own_catalog, pinned.chain, wanted):
            position = int(rows.fact_offsets[-1]) + 1
            yield rows
        # A segment may have been published of facts that the pinned tail holds too.
        behind = replace(wanted, from_offset=max(position, _end(pinned.chain)))
        for table in pinned.tail.tables:
            chosen = table.filter(behind.expression())
            if chosen.num_rows:
                yield ArchivedFacts.from_table(chosen)

    def _look(self, key: ChainKey) -> Chain:
        self._own_catalog.refresh(key)
        return self._own_catalog.view.chain(key)


def _end(chain: Chain) -> int:
    return chain.segments[-1].end_offset if chain.segments else chain.start_offset


def _generation(key: ChainKey) -> tuple[str, str]:
    return key.topic, key.generation


def _generations(chains: Mapping[ChainKey, Chain], tails: Mapping[ChainKey, OpenTail]) -> list[tuple[str, str]]:
    """Those with segments as a reader of the store orders them, then those that have none yet, by their first fact."""
    archived = CatalogView(chains).generations
    new = sorted(
        (tail.tables[0]["timestamp_ns"][0].as_py(), _generation(key))
        for key, tail in tails.items()
        if tail.tables and _generation(key) not in archived
    )
    return list(dict.fromkeys((*archived, *(generation for _, generation in new))))
