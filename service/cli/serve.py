"""`litehit serve`: the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import (
    Bootstrap,
    FanoutAllInstances,
    Host,
    OverrideInstance,
    Port,
    RegistryFile,
    Store,
    load_settings,
)

if TYPE_CHECKING:
    from service.settings import Role


def serve(
    embedded: Annotated[
        bool | None,
        typer.Option("--embedded", help="Run a broker inside this process, instead of Kafka. [LITEHIT_EMBEDDED]"),
    ] = None,
    roles: Annotated[
        str, typer.Option(metavar="ROLE,...", help="What this process does: lanes, archive, api.")
    ] = "lanes,archive,api",
    bootstrap: Bootstrap = None,
    registry: RegistryFile = None,
    store: Store = None,
    host: Host = None,
    port: Port = None,
    accept_gap: Annotated[
        bool | None,
        typer.Option(
            "--accept-gap",
            help="Archive on where facts expired unarchived; their segment records the gap. [LITEHIT_ACCEPT_GAP]",
        ),
    ] = None,
    fanout_all_instances: FanoutAllInstances = False,
    override_instance_id: OverrideInstance = None,
) -> None:
    """Run the service until SIGTERM or SIGINT, which stop it cleanly; a second one stops it at once."""
    from service.logs import configure_logs
    from service.serve import run_service

    settings = load_settings(
        embedded=embedded,
        bootstrap=bootstrap,
        registry=registry,
        store=store,
        host=host,
        port=port,
        accept_gap=accept_gap,
        fanout_all_instances=fanout_all_instances or None,
        override_instance_id=override_instance_id,
    )
    chosen = parse_roles(roles)
    configure_logs(settings)
    run_service(settings, chosen)


def parse_roles(text: str) -> frozenset[Role]:
    """The roles of a list such as `archive,api`."""
    from service.settings import Role

    names = [name.strip() for name in text.split(",")]
    known = [role.value for role in Role]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is no role; give some of {','.join(known)}", param_hint="--roles")
    return frozenset(map(Role, names))
