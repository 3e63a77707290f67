"""Puts the chosen roles together in one process and runs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from litehit.errors import OptionError
from litehit.registry import Registry
from service.api.address import Address
from service.api.app import create_app
from service.api.as_of import archive_lag
from service.api.fact_log import FactLog
from service.api.follower import StoreFollower
from service.api.index import FactIndex
from service.api.open_facts import OpenFacts
from service.api.pages_folder import default_folder
from service.api.readiness import StatusProvider, api_waiting, archive_waiting, lanes_waiting
from service.api.segment_reader import ParquetReader
from service.api.server import ApiServer
from service.archive.archiver import Archiver
from service.archive.catalog import Catalog
from service.archive.errors import StoreError
from service.archive.listener import FactListeners
from service.archive.open_store import open_store
from service.archive.segment import FACTS_FOLDER
from service.archive.upkeep import Upkeep
from service.embedded import EmbeddedBroker
from service.heap import give_back_early
from service.lag_window import LagWindow
from service.lanes.committed import RequestsTopic
from service.lanes.snapshots import Snapshots
from service.lanes.worker import LanesWorker
from service.metrics import ArchiveMetrics, FollowerMetrics, LanesMetrics, UpkeepMetrics
from service.settings import Role, Settings
from service.supervisor import Supervisor, stopping_on_signals
from service.topic_watch import TopicWatch
from service.topics import TopicLayout, prepare_topics

log = structlog.get_logger()

EXAMPLE_REGISTRY = (
    "{groups: [{name: all, capacity_gb: [64]}], "
    'instances: [{instance_id: "*", group: all, block_size_tokens: 512, block_bytes: 33554432}]}'
)
"""A registry file in one line, for the error that asks for one."""

EMBEDDED_FACTS_BYTES = 2**19
"""Facts that the lanes may be ahead of the archive by before they hold back.

The embedded broker forgets what goes beyond 5 MiB a partition. One more batch comes on top: the facts of the requests
that `publish` lets stand unprocessed (2 MiB; with variants so much less, as a request becomes more facts), whose curves
are, at worst, twice as long as their keys.
"""

_DRAIN_SECONDS = 30.0
_DRAIN_LOOK_SECONDS = 0.05


def run_service(settings: Settings, roles: Collection[Role]) -> None:
    """Run roles until a signal says to stop.

    They are stopped in the direction of the stream: the lanes, then the archive, once it has what they left, then the
    API.

    Raises:
        OptionError: a role lacks a setting.
        RoleFailed: a role ended by itself; the others were stopped.
        LiteHitError: something could not be started.
    """
    _check(settings, roles)
    give_back_early()
    # Before anything is started: a file with a mistake must not leave half a process behind.
    registry = Registry.load(settings.registry) if Role.LANES in roles and settings.registry else None
    # Several processes without the role `api` may share a host, so none of them takes the default port unasked.
    http = Role.API in roles or "port" in settings.model_fields_set
    supervisor = Supervisor()
    with stopping_on_signals(supervisor), ExitStack() as opened:
        # Before a broker is looked for, which may take long.
        address = opened.enter_context(closing(Address(settings.host, settings.port))) if http else None
        most_facts = 1 if registry is None else registry.most_facts
        broker = opened.enter_context(EmbeddedBroker(Path(settings.store), most_facts)) if settings.embedded else None
        process = _Process(settings, supervisor, broker)
        process.open_store(for_writing=Role.ARCHIVE in roles or Role.LANES in roles)
        if broker is not None:
            process.tell_what_is_forgotten(broker)
        index = process.make_index() if Role.API in roles else None
        archiver = process.make_archiver(index) if Role.ARCHIVE in roles else None
        worker = process.make_worker(registry, archiver) if registry is not None else None
        # Started against the stream, since the supervisor stops the last started first.
        if address is not None:
            process.start_http(address, index, archiver, worker)
        if archiver is not None:
            supervisor.start("upkeep", process.make_upkeep().run)
            supervisor.start("archive", archiver.run, drain=process.drain(archiver))
        if worker is not None:
            supervisor.start("lanes", worker.run)
        supervisor.run()


def _check(settings: Settings, roles: Collection[Role]) -> None:
    """Raise OptionError for what is missing before anything is started."""
    if settings.embedded and "://" in settings.store:
        raise OptionError(f"store {settings.store} is no folder; the embedded broker leaves its address in a folder")
    if not settings.embedded and settings.bootstrap is None and (Role.LANES in roles or Role.ARCHIVE in roles):
        raise OptionError("no broker is named; give --bootstrap HOST:PORT for Kafka, or --embedded")
    if Role.LANES in roles and settings.registry is None:
        raise OptionError(
            f"the role lanes needs a registry file, which says how each instance is analysed; write one (YAML) such as "
            f"{EXAMPLE_REGISTRY} and give it as --registry FILE or LITEHIT_REGISTRY"
        )


class _Process:
    """What the roles of a process share while they are put together."""

    def __init__(self, settings: Settings, supervisor: Supervisor, broker: EmbeddedBroker | None) -> None:
        self._settings = settings
        self._supervisor = supervisor
        self._broker = broker
        self._metrics = CollectorRegistry()
        self._status: list[StatusProvider] = []
        self._open_facts = OpenFacts()

    def open_store(self, *, for_writing: bool) -> None:
        self._store = open_store(self._settings.store, for_writing=for_writing)

    def tell_what_is_forgotten(self, broker: EmbeddedBroker) -> None:
        """What ended with the embedded broker before, where it left something in the store."""
        if (died := broker.died) is not None:
            log.warning(
                "embedded_broker_died",
                pid=died.pid,
                effect="what it had taken and was in no segment yet is gone; publish all again into a new store, or "
                "what is in segments counts twice",
            )
            topic = RequestsTopic(self._settings.requests_topic, died.generation, self._layout.partitions)
            try:
                Snapshots(self._store, topic).delete_all()  # which would have been deleted with its topics
            except StoreError as error:
                log.warning("snapshots_left_behind", error=str(error))
        if self._store.list(FACTS_FOLDER):
            log.warning(
                "caches_begin_empty",
                effect="the embedded broker has forgotten the requests behind the facts in the store: the first ones "
                "that come now miss what those had cached",
            )

    def make_index(self) -> FactIndex:
        settings = self._settings
        pages = default_folder(settings.store) if settings.index_dir is None else settings.index_dir
        return FactIndex(ParquetReader(self._store), pages=pages, window_rows=settings.window_rows)

    def make_archiver(self, index: FactIndex | None) -> Archiver:
        metrics = ArchiveMetrics(self._metrics)
        listener = None if index is None else FactListeners(index, self._open_facts)
        layout = self._layout
        archiver = Archiver(
            self._settings,
            self._bootstrap,
            layout.facts_generation,
            layout.partitions,
            self._store,
            metrics,
            listener,
            self._watch(self._settings.facts_topic),
        )
        metrics.watch(archiver.status)
        self._status.append(archive_waiting(archiver.status))
        return archiver

    def make_upkeep(self) -> Upkeep:
        return Upkeep(self._settings, self._store, UpkeepMetrics(self._metrics))

    def make_worker(self, registry: Registry, archiver: Archiver | None) -> LanesWorker:
        settings = self._settings
        metrics = LanesMetrics(self._metrics)
        options: dict[str, Any] = {}
        if archiver is not None and settings.embedded:
            window = LagWindow(EMBEDDED_FACTS_BYTES, lambda partitions: archiver.status().consumed(partitions))
            options = {"hold": window.is_full, "facts_window": window}
        options["watch"] = self._watch(settings.requests_topic)
        worker = LanesWorker(settings, self._bootstrap, self._layout, registry, metrics, self._store, **options)
        metrics.watch(worker.status)
        self._status.append(lanes_waiting(worker.status))
        return worker

    def start_http(
        self, address: Address, index: FactIndex | None, archiver: Archiver | None, worker: LanesWorker | None
    ) -> None:
        """Serve the API over an index; without one, probes and metrics."""
        settings = self._settings
        log = None
        if index is not None:
            catalog = Catalog(self._store, settings.facts_topic)
            follower = StoreFollower(catalog, index, settings.follow_seconds)
            log = FactLog(catalog, self._open_facts)
            self._status.append(api_waiting(follower.waiting))
            FollowerMetrics(self._metrics, follower.waiting)
        app = create_app(
            index,
            registry=self._metrics,
            status=self._status,
            lanes=None if worker is None else worker.status,
            log=log,
            **({} if archiver is None else {"lag": archive_lag(archiver.status)}),
        )
        server = ApiServer(app, address)
        if self._broker is not None:
            self._broker.announce(server.url)
        self._supervisor.start("api" if index is not None else "http", server.serve)
        if index is not None:
            self._supervisor.start("index", follower.run)

    def drain(self, archiver: Archiver) -> Callable[[], None]:
        """On the embedded broker, which is forgotten at the end, the archive takes in what the topic holds."""
        return (lambda: _drain(archiver)) if self._settings.embedded else (lambda: None)

    def _watch(self, topic: str) -> TopicWatch | None:
        # The embedded broker can't tell, and forgets its topics only when it ends.
        return None if self._settings.embedded else TopicWatch(self._settings, self._bootstrap, topic)

    @property
    def _bootstrap(self) -> str:
        bootstrap = self._settings.bootstrap if self._broker is None else self._broker.bootstrap
        assert bootstrap is not None
        return bootstrap

    @cached_property
    def _layout(self) -> TopicLayout:
        generation = None if self._broker is None else self._broker.generation
        return prepare_topics(self._settings, self._bootstrap, generation)


def _drain(archiver: Archiver) -> None:
    deadline = time.monotonic() + _DRAIN_SECONDS
    while left := archiver.backlog():
        if time.monotonic() > deadline:
            log.error("facts_left_behind", facts=left, waited_seconds=_DRAIN_SECONDS)
            return
        time.sleep(_DRAIN_LOOK_SECONDS)
