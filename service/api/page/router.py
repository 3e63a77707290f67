"""Serves the page."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from service.api.answering import not_modified, takes_gzip, validators
from service.api.page.assets import Asset, page_assets

_EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
"""Hash of nothing: the chart library adds an empty style element and fills it rule by rule, which needs no leave."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {_EMPTY_STYLE}",
        "img-src 'self' data: blob:",  # the picture to download is drawn from these
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

_SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def page_router() -> APIRouter:
    """`/`, and what it loads from below `/page`."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def home(request: Request) -> Response:
        assets = page_assets()
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, **validators(f'W/"{assets.digest}"')}
        return not_modified(request, headers) or _send(request, assets.home, headers)

    @router.get("/page/{digest}/{name}")
    def file(request: Request, digest: str, name: str) -> Response:
        assets = page_assets()
        asset = assets.named.get(name)
        if digest != assets.digest or asset is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return _send(request, asset, {"Cache-Control": "public, max-age=31536000, immutable"})

    return router


def _send(request: Request, asset: Asset, headers: dict[str, str]) -> Response:
    headers = {**headers, **_SAFE, "Vary": "Accept-Encoding"}
    if not takes_gzip(request):
        return Response(asset.body, headers=headers, media_type=asset.media_type)
    return Response(asset.gzipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type)
