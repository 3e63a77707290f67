"""`litehit schema`: the JSON Schemas and the AsyncAPI document, generated from the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from service.cli.options import load_settings


def schema(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to; made if absent.")],
) -> None:
    """Write the JSON Schemas of every record and answer, and the AsyncAPI document of the topics."""
    from litehit.atomic_file import atomic_file
    from schemas.asyncapi import asyncapi_document
    from schemas.documents import json_schemas

    documents = json_schemas()
    documents["asyncapi.json"] = asyncapi_document(load_settings().topics)
    directory.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        with atomic_file(directory / name) as file:
            file.write(f"{json.dumps(document, indent=2)}\n".encode())
        typer.echo(directory / name)
