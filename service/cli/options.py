"""Options that several commands share; each is also a setting."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from service.format_names import AUTO, LINE_FORMATS, FormatName

if TYPE_CHECKING:
    from pydantic import ValidationError

    from service.embedded import EmbeddedAddress
    from service.formats.trace_format import TraceFormat
    from service.settings import Settings
    from service.trace_source import Trace

TraceArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TRACE", help="JSON Lines, .gz and .zst too; of sessions a folder as well; - is standard input."
    ),
]
TraceFormatName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--format", metavar="F", help=f"{', '.join(LINE_FORMATS)}, or {AUTO}: recognised from the first lines."
    ),
]
Reorder: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--reorder",
        metavar="SECONDS",
        help="Put records in order of their times where they stand so far apart. [default: 600 for dynamo, else 0]",
    ),
]
Bootstrap: TypeAlias = Annotated[
    str | None,
    typer.Option("--bootstrap", metavar="HOST:PORT", help="Kafka's bootstrap servers. [LITEHIT_BOOTSTRAP]"),
]
Embedded: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--embedded", help="The broker of the `serve --embedded` that uses the same store. [LITEHIT_EMBEDDED]"
    ),
]
RegistryFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--registry", metavar="FILE", help="Registry file (YAML). [LITEHIT_REGISTRY]"),
]
Instance: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--instance", metavar="ID", help="Instance where a line names none. [default: the registry's only exact one]"
    ),
]
Template: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--instance-template",
        metavar="TEMPLATE",
        help="Build instance ids from fields of the records, such as {model}/{metadata.tenant|none}. "
        "[LITEHIT_INSTANCE_TEMPLATE]",
    ),
]
FanoutAllInstances: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--fanout-all-instances",
        help="Send each request to every instance registered by exact id. [LITEHIT_FANOUT_ALL_INSTANCES]",
    ),
]
OverrideInstance: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--override-instance-id",
        metavar="ID",
        help="Send each request to this instance. [LITEHIT_OVERRIDE_INSTANCE_ID]",
    ),
]
Store: TypeAlias = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="A folder, s3://, gs:// or az://. [LITEHIT_STORE]"),
]
Host: TypeAlias = Annotated[str | None, typer.Option("--host", help="Address the HTTP API listens on. [LITEHIT_HOST]")]
Port: TypeAlias = Annotated[
    int | None, typer.Option("--port", help="Port of the HTTP API; 0 picks a free one. [LITEHIT_PORT]")
]


_IN_NANOSECONDS = (FormatName.NATIVE, FormatName.TAIR)
_YEARS = 4  # as old as traces are that people replay

_PREFIX = "LITEHIT_"
# Of this program and its tests, though no setting; and what Kubernetes tells pods of services called litehit-something.
_IS_OTHERS = re.compile("CRASH_POINT|SOAK_.*|TEST_.*|(.*_)?SERVICE_(HOST|PORT)(_.*)?|(.*_)?PORT_[0-9]+_.*")


def load_settings(*, bootstrap: str | None = None, embedded: bool | None = None, **options: Any) -> Settings:
    """The settings: the options that were given, over LITEHIT_* variables, over the defaults.

    Raises:
        typer.BadParameter: a value is wrong; the message names the option or variable and what is allowed.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from service.settings import Settings

    given = {name: value for name, value in options.items() if value is not None}
    # Naming a broker on the command line also says that it is not the other kind, whatever the environment says.
    if bootstrap is not None:
        given |= {"bootstrap": bootstrap, "embedded": bool(embedded)}
    elif embedded:
        given |= {"embedded": True, "bootstrap": None}
    for told in unknown_variables(os.environ, Settings.model_fields):
        warn(told)
    try:
        return Settings(**given)
    except ValidationError as error:
        raise typer.BadParameter(settings_error(error, given)) from None
    except SettingsError as error:  # what is not even JSON
        name, why = str(error).partition('"')[2].partition('"')[0], error.__cause__ or error
        raise typer.BadParameter(f"{_PREFIX}{name.upper()}: {why}; give a JSON object of strings") from None


def unknown_variables(environment: Mapping[str, str], settings: Iterable[str]) -> Iterator[str]:
    """A sentence for each LITEHIT_* variable that is no setting: most likely one is misspelt, and so not in force."""
    known = [name.upper() for name in settings]
    for variable, value in sorted(environment.items()):
        name = variable.removeprefix(_PREFIX)
        is_others = _IS_OTHERS.fullmatch(name) or value.startswith(("tcp://", "udp://"))
        if name != variable and name not in known and not is_others:
            meant = get_close_matches(name, known, 1)
            remedy = f"did you mean {_PREFIX}{meant[0]}?" if meant else "README's section Settings lists all"
            yield f"{variable} is no setting and does nothing; {remedy}"


def broker_address(settings: Settings) -> str:
    """HOST:PORT of the broker that the settings name; the embedded one is looked up in the store.

    Raises:
        typer.BadParameter: they name none.
        EmbeddedBrokerError: no embedded broker runs on the store.
    """
    if settings.bootstrap is not None:
        return settings.bootstrap
    return embedded_address(settings).bootstrap


def embedded_address(settings: Settings) -> EmbeddedAddress:
    """The embedded broker that the settings ask for, looked up in the store. Errors are those of `broker_address`."""
    if not settings.embedded:
        raise typer.BadParameter("no broker is named; give --bootstrap HOST:PORT for Kafka, or --embedded")
    from service.embedded import find_embedded

    return find_embedded(Path(settings.store))


def default_instance(given: str | None, settings: Settings) -> str | None:
    """The instance of lines that name none: the one given, or else the registry's only exact one.

    Raises:
        typer.BadParameter: one is given, and a template that would not let it be.
    """
    check_naming(given, settings)
    if given is not None or settings.registry is None:
        return given
    from litehit.registry import Registry

    return Registry.load(settings.registry).default_instance()


def check_naming(instance: str | None, settings: Settings) -> None:
    """Check that an instance and a template are not given both.

    Raises:
        typer.BadParameter: they are.
    """
    if instance is not None and settings.instance_template is not None:
        raise typer.BadParameter(
            f"{instance!r} and the instance template {settings.instance_template!r} exclude each other; "
            f"give one of them",
            param_hint="--instance",
        )


def put_in_order(trace: Trace) -> str:
    """What is to be told of records that stood out of order; nothing where none did."""
    return f"; {trace.late} stood after a record of a later time and were put in order" if trace.late else ""


def warn(text: str) -> None:
    """Tell it on stderr; the work goes on."""
    typer.echo(f"warning: {text}", err=True)


def warn_of_unit(first_ns: int | None, trace_format: TraceFormat) -> None:
    """Tell where the first time of a trace that states nanoseconds is one of our days in another unit."""
    if first_ns is not None and trace_format.name in _IN_NANOSECONDS:
        warn_of_other_unit(first_ns, "timestamp_ns")


def warn_of_other_unit(time_ns: int, what: str) -> None:
    """Tell where a time that is taken as nanoseconds is one of our days in another unit."""
    from litehit.time_units import other_unit

    if (told := other_unit(time_ns, time.time_ns(), _YEARS, what)) is not None:
        warn(told)


def settings_error(error: ValidationError, options: Collection[str]) -> str:
    """One line that names each wrong setting, by the option or the variable it comes from, and what is allowed."""
    return "; ".join(
        f"{_name(problem['loc'], problem['input'], options)}{problem['msg'].removeprefix('Value error, ')}"
        for problem in error.errors()
    )


def _name(location: tuple[int | str, ...], value: Any, options: Collection[str]) -> str:
    if not location:
        return ""
    name, *inside = map(str, location)
    source = f"--{name.replace('_', '-')}" if name in options else f"{_PREFIX}{name.upper()}"
    if name == "kafka":  # which holds passwords
        return f"{source}: {': '.join(inside)}: " if inside else f"{source}: "
    return f"{source} = {value}: "
