"""The page as it is sent: whole, compressed, cacheable, and allowed nothing from elsewhere."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from service.api.page.assets import page_assets
from tests.api_doubles import Client


def test_the_page_allows_only_its_own_server(client: Client) -> None:
    home = client.get("/")
    assert home.status_code == 200
    assert home.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in home.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in home.headers["content-security-policy"]
    assert not re.search(r"https?://|<style|onclick|\{\{", home.text)


def test_everything_it_names_is_there_and_may_be_kept_for_good(client: Client) -> None:
    named = re.findall(r'(?:href|src)="(page/[^"]+)"', client.get("/").text)
    assert {Path(one).suffix for one in named} == {".svg", ".css", ".js"}
    for name in named:
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_every_module_it_imports_is_there(client: Client) -> None:
    folder = next(one for one in re.findall(r'src="(page/\w+)/theme.js"', client.get("/").text))
    modules, seen = ["app.js"], set()
    while modules:
        name = modules.pop()
        seen.add(name)
        text = client.get(f"/{folder}/{name}").text
        modules += [one for one in re.findall(r'from "\./([\w.]+)"', text) if one not in seen]
    own = {one for one in page_assets().named if one.endswith(".js")} - {"plotly.min.js", "theme.js"}
    assert seen == own


def test_the_page_is_asked_for_again_and_not_sent_again(client: Client) -> None:
    home = client.get("/")
    assert home.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"If-None-Match": home.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_files_are_compressed_for_those_who_take_it(client: Client) -> None:
    path = next(one for one in re.findall(r'href="(page/\w+/plotly.min.js)"', client.get("/").text))
    plain = client.get(f"/{path}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = client.get(f"/{path}", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.content == plain.content  # the client has unpacked it
    assert len(gzip.compress(plain.content)) < len(plain.content) / 3
    assert int(packed.headers["content-length"]) < len(plain.content) / 3


def test_what_is_not_of_the_page_is_a_problem(client: Client) -> None:
    digest = page_assets().digest
    for path in ("/page/0123456789abcdef/app.js", f"/page/{digest}/index.html", f"/page/{digest}/..%2Fassets.py"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"


def test_the_wheel_has_all_of_it(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=root, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    folder = root / "service" / "api" / "page" / "files"
    assert {f"service/api/page/files/{one.name}" for one in folder.iterdir()} <= packed


def test_a_process_without_the_api_shows_its_calls_instead(connect: Callable[..., Client]) -> None:
    home = connect(None).get("/")
    assert (home.status_code, home.headers["location"]) == (307, "/docs")
