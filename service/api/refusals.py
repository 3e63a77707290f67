"""What the index refuses to answer, as problem documents."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request, Response

from service.api.index import IndexLoading, UnknownInstances
from service.api.problems import ApiProblem, parameter_problem, respond
from service.api.selection import TooManyPieces
from service.api.turns import TooManyCalls
from service.api.window_sums import WindowTooLarge
from service.archive.errors import ArchiveError


def install_refusals(app: FastAPI) -> None:
    """Let each refusal of the index end a call with its problem document."""

    @app.exception_handler(IndexLoading)
    def _loading(request: Request, error: IndexLoading) -> Response:
        return respond(
            request,
            ApiProblem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "index-loading",
                "The index is loading",
                f"the facts are not summed yet ({error}); ask again when /readyz says ready",
                retry_after=1,
            ),
        )

    @app.exception_handler(UnknownInstances)
    def _unknown(request: Request, error: UnknownInstances) -> Response:
        meant = f"did you mean {error.near}? Otherwise send" if error.near else "send"
        errors = [
            parameter_problem(
                "instance_id",
                instance_id,
                f"has no facts; {meant} an id that has, leave it out to see those, or wait for its first request",
            )
            for instance_id in error.instance_ids
        ]
        detail = errors[0].detail if len(errors) == 1 else f"{errors[0].detail}; and {len(errors) - 1} more"
        return respond(
            request,
            ApiProblem(HTTPStatus.NOT_FOUND, "unknown-instance", "No facts of an instance", detail, errors),
        )

    @app.exception_handler(WindowTooLarge)
    def _too_large(request: Request, error: WindowTooLarge) -> Response:
        return _refuse_window(
            request,
            f"makes a window whose edges lie among {error.rows:,} facts; one call reads {error.limit:,} at most, "
            f"so ask for a window that begins and ends with whole hours, or for the whole history, which needs no rows",
        )

    @app.exception_handler(TooManyPieces)
    def _too_many_pieces(request: Request, error: TooManyPieces) -> Response:
        return _refuse_window(
            request,
            f"makes a window whose curves have {error.pieces:,} pieces; one call merges {error.limit:,} at most; "
            f"ask for a shorter window, for fewer instances, or for the whole history",
        )

    @app.exception_handler(TooManyCalls)
    def _too_many(request: Request, error: TooManyCalls) -> Response:
        return respond(
            request,
            ApiProblem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too-many-calls",
                "Too many calls at once",
                f"{error}; send this call again when one has ended",
                retry_after=1,
            ),
        )

    @app.exception_handler(ArchiveError)
    def _unusable(request: Request, error: ArchiveError) -> Response:
        return respond(
            request,
            ApiProblem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "store-unusable",
                "The facts can't be read",
                f"{error}; when that is mended, send this call again",
                retry_after=10,
            ),
        )


def _refuse_window(request: Request, reason: str) -> Response:
    errors = [
        parameter_problem(name, value, reason)
        for name in ("from", "to")
        if (value := request.query_params.get(name)) is not None
    ]
    return respond(
        request,
        ApiProblem(
            HTTPStatus.UNPROCESSABLE_ENTITY, "window-too-large", "The window is too large", errors[0].detail, errors
        ),
    )
