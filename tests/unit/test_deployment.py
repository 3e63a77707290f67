"""The deployment files name commands, settings and topics that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from litehit.registry import Registry
from service.cli.serve import parse_roles
from service.settings import Role, Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    services: dict[str, dict[str, Any]] = compose["services"]
    return services


def _settings(environment: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in environment.items():
        assert name.removeprefix("LITEHIT_").lower() in Settings.model_fields, name
        monkeypatch.setenv(name, str(value))
    return Settings()


def test_the_processes_have_every_role_between_them(services: dict[str, dict[str, Any]]) -> None:
    roles: list[Role] = []
    for name in ("lanes", "sidecar"):
        command, option, value = services[name]["command"]
        assert (command, option) == ("serve", "--roles")
        roles += parse_roles(value)
    assert sorted(roles) == sorted(Role)


@pytest.mark.parametrize("name", ["lanes", "sidecar"])
def test_the_processes_are_set_up_by_settings(
    name: str, services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _settings(services[name]["environment"], monkeypatch)
    assert settings.bootstrap is not None
    listeners = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"INTERNAL://{settings.bootstrap}" in listeners.split(",")
    mounts = dict(volume.split(":")[:2] for volume in services[name]["volumes"])
    assert mounts["./deploy/registry.yaml"] == str(settings.registry)


def test_the_topics_are_those_of_the_settings(services: dict[str, dict[str, Any]]) -> None:
    (script,) = services["topics"]["command"]
    created = {line.split()[1]: shlex.split(line)[2:] for line in script.splitlines() if line.startswith("create lite")}
    settings = Settings()
    assert tuple(created) == settings.topics
    # Without a snapshot lanes rebuild their caches from the first request, so it may not expire.
    assert "retention.ms=-1" in created[settings.requests_topic]
    (limit,) = re.findall(r"max\.message\.bytes=(\d+)", " ".join(created[settings.dead_letters_topic]))
    assert int(limit) > settings.dead_letter_max_bytes
    assert "$$@" in script  # compose takes one dollar sign for a variable of its own


def test_the_images_settings_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    named = dict(re.findall(r"(LITEHIT_\w+)=(\S+)", DOCKERFILE))
    settings = _settings(named, monkeypatch)
    assert settings.host == "0.0.0.0"
    assert f"EXPOSE {settings.port}" in DOCKERFILE
    assert "port" in settings.model_fields_set  # so that lanes alone have what the health check asks
    assert f"VOLUME {settings.store}" in DOCKERFILE


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if re.match(r"COPY (?!--from)", line)]
    for path in [path for paths in copied for path in paths]:
        assert (ROOT / path).exists(), path
        assert f"!{path}" in ignored, path


def test_the_registry_covers_every_instance() -> None:
    assert Registry.load(ROOT / "deploy" / "registry.yaml").resolve("anything").block_size_tokens == 512
