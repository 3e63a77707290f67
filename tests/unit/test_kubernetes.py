"""The Kubernetes manifests name settings, paths, ports and folders that exist and that agree with each other."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from litehit.registry import Registry
from schemas.answers import Waiting
from service.api.app import create_app
from service.archive.open_store import open_store
from service.cli.serve import parse_roles
from service.settings import Role, Settings
from tests.api_doubles import Client

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
IMAGE = dict(re.findall(r"(\w+)=(\S+)", (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")))
"""Variables that the image sets, among other assignments."""

MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "litehit.yaml").read_text(encoding="utf-8")))
SECRET = "from-the-secret"


def _of_kind(*kinds: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in MANIFESTS if one["kind"] in kinds}


WORKLOADS = _of_kind("StatefulSet", "Deployment")
CONFIG_MAPS = {name: one["data"] for name, one in _of_kind("ConfigMap").items()}
SERVICES = _of_kind("Service")
each_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


def _pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def _container(workload: dict[str, Any]) -> dict[str, Any]:
    (container,) = _pod(workload)["containers"]
    assert isinstance(container, dict)
    return container


def _pod_names(workload: dict[str, Any]) -> list[str]:
    """Names as Kubernetes gives them; those of a deployment's pods are new at each start."""
    name, ordinals = workload["metadata"]["name"], range(workload["spec"]["replicas"])
    return [f"{name}-{at if workload['kind'] == 'StatefulSet' else 'x' * (at + 1)}" for at in ordinals]


def _roles(workload: dict[str, Any]) -> frozenset[Role]:
    command, option, value = _container(workload)["args"]
    assert (command, option) == ("serve", "--roles")
    return parse_roles(value)


def _value(variable: dict[str, Any], pod_name: str) -> str | None:
    """What a container finds; None where an optional secret is not there."""
    source = variable.get("valueFrom")
    if source is None:
        return str(variable["value"])
    if "fieldRef" in source:
        assert source["fieldRef"] == {"fieldPath": "metadata.name"}
        return pod_name
    return None if source["secretKeyRef"].get("optional") else SECRET


def _environment(workload: dict[str, Any], pod_name: str = "a-pod") -> dict[str, str]:
    container = _container(workload)
    named = {name: IMAGE[name] for name in ("LITEHIT_HOST", "LITEHIT_PORT", "LITEHIT_STORE", "LITEHIT_LOG_FORMAT")}
    for source in container["envFrom"]:
        named |= CONFIG_MAPS[source["configMapRef"]["name"]]
    found = {variable["name"]: _value(variable, pod_name) for variable in container["env"]}
    return named | {name: value for name, value in found.items() if value is not None}


def _settings(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, pod_name: str = "a-pod") -> Settings:
    for name, value in _environment(workload, pod_name).items():
        monkeypatch.setenv(name, value)
    return Settings()


def _mounts(container: dict[str, Any]) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def _volumes(workload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {volume["name"]: volume for volume in _pod(workload)["volumes"]}


def test_the_processes_have_every_role_between_them() -> None:
    roles = [role for workload in WORKLOADS.values() for role in _roles(workload)]
    assert sorted(roles) == sorted(Role)


@each_workload
def test_the_processes_are_set_up_by_settings(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of secrets too, which the settings themselves are read without.
    names = {*_environment(workload), *(variable["name"] for variable in _container(workload)["env"])}
    ours = {name for name in names if name.startswith("LITEHIT_")}
    assert ours <= {f"LITEHIT_{name.upper()}" for name in Settings.model_fields}
    settings = _settings(workload, monkeypatch)
    assert settings.bootstrap is not None
    assert (settings.registry is not None) == (Role.LANES in _roles(workload))


def test_what_comes_from_secrets_is_no_plain_value() -> None:
    for workload in WORKLOADS.values():
        for variable in _container(workload)["env"]:
            secret = re.search("SECRET|ACCESS_KEY|KAFKA$", variable["name"]) is not None
            assert secret == ("secretKeyRef" in variable.get("valueFrom", {})), variable["name"]
    assert "Secret" not in {one["kind"] for one in MANIFESTS}  # applying it again would overwrite the real one
    assert all("ACCESS_KEY" not in name for data in CONFIG_MAPS.values() for name in data)


def test_the_store_is_one_that_every_process_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    (store,) = {_settings(workload, monkeypatch).store for workload in WORKLOADS.values()}
    assert store.startswith("s3://")


@contextmanager
def _bucket(asked: list[str]) -> Iterator[str]:
    """An object store without objects; gathers the header that says who asks."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            body = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@each_workload
def test_the_store_is_asked_with_the_secrets_keys(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    settings = _settings(workload, monkeypatch)
    with _bucket(asked) as url:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        assert open_store(settings.store).list() == []
    (header,) = asked
    region = CONFIG_MAPS["litehit-settings"]["AWS_REGION"]
    assert re.search(rf"Credential={SECRET}/\d+/{region}/s3/", header)


def test_each_lanes_process_has_a_transactional_id_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    (lanes,) = [workload for workload in WORKLOADS.values() if Role.LANES in _roles(workload)]
    assert lanes["kind"] == "StatefulSet"  # whose pods keep their names
    pods = _pod_names(lanes)
    ids = {_settings(lanes, monkeypatch, pod).transactional_id for pod in pods}
    assert len(ids) == len(pods) > 1


@each_workload
def test_probes_ask_what_is_served(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    container = _container(workload)
    asked = {probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert {ports[one["port"]] for one in asked.values()} == {_settings(workload, monkeypatch).port}
    waiting: list[Waiting] = []
    with closing(Client(create_app(None, registry=CollectorRegistry(), status=[lambda: waiting]))) as client:
        ready = {probe: client.get(one["path"]).status_code for probe, one in asked.items()}
        waiting.append(Waiting(component="lanes", detail="caches are restored"))
        unready = {probe: client.get(one["path"]).status_code for probe, one in asked.items()}
    assert ready == {"startupProbe": 200, "livenessProbe": 200, "readinessProbe": 200}
    # A process that waits is not restarted for it.
    assert unready == {"startupProbe": 200, "livenessProbe": 200, "readinessProbe": 503}


@each_workload
def test_prometheus_is_told_where_the_metrics_are(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    told = workload["spec"]["template"]["metadata"]["annotations"]
    assert told["prometheus.io/scrape"] == "true"
    assert told["prometheus.io/port"] == str(_settings(workload, monkeypatch).port)
    with closing(Client(create_app(None, registry=CollectorRegistry()))) as client:
        answer = client.get(told["prometheus.io/path"])
    assert (answer.status_code, answer.headers["Content-Type"].split(";")[0]) == (200, "text/plain")


@each_workload
def test_a_service_leads_to_each_workload(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"] == labels
    (service,) = [one for one in SERVICES.values() if one["spec"]["selector"].items() <= labels.items()]
    (port,) = service["spec"]["ports"]
    ports = {one["name"]: one["containerPort"] for one in _container(workload)["ports"]}
    settings = _settings(workload, monkeypatch)
    assert ports[port["targetPort"]] == port["port"] == settings.port
    assert settings.host == "0.0.0.0"
    if workload["kind"] == "StatefulSet":
        assert workload["spec"]["serviceName"] == service["metadata"]["name"]
        assert service["spec"]["clusterIP"] == "None"


@each_workload
def test_services_leave_no_variables_in_the_pods(workload: dict[str, Any]) -> None:
    """A service called `litehit` would set LITEHIT_PORT, and one called `litehit-api` LITEHIT_API_PORT."""
    assert _pod(workload)["enableServiceLinks"] is False


def test_the_registry_is_the_one_of_the_deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (lanes,) = [workload for workload in WORKLOADS.values() if Role.LANES in _roles(workload)]
    path = _settings(lanes, monkeypatch).registry
    assert path is not None
    volume = _volumes(lanes)[_mounts(_container(lanes))[str(path.parent)]]
    content = CONFIG_MAPS[volume["configMap"]["name"]][path.name]
    assert content == (ROOT / "deploy" / "registry.yaml").read_text(encoding="utf-8")
    (tmp_path / path.name).write_text(content, encoding="utf-8")
    assert Registry.load(tmp_path / path.name).resolve("anything").block_size_tokens == 512


@each_workload
def test_there_is_time_to_end(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = _settings(workload, monkeypatch)
    # What is handed over before the snapshots, at worst.
    least = settings.snapshot_deadline_seconds + settings.transaction_timeout_seconds
    assert _pod(workload)["terminationGracePeriodSeconds"] > least


@each_workload
def test_what_is_written_to_is_writable(workload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    container, volumes = _container(workload), _volumes(workload)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    scratch = {path for path, name in _mounts(container).items() if "emptyDir" in volumes[name]}
    written = {IMAGE["NUMBA_CACHE_DIR"]}
    if Role.API in _roles(workload):
        written.add(str(_settings(workload, monkeypatch).index_dir))
    assert scratch == written


@each_workload
def test_what_the_image_has_compiled_is_taken_along(workload: dict[str, Any]) -> None:
    (init,) = _pod(workload)["initContainers"]
    cache, container = IMAGE["NUMBA_CACHE_DIR"], _container(workload)
    *copy, source, target = init["command"]
    assert copy == ["cp", "-R"]
    assert source == f"{cache}/."
    assert _mounts(init)[target] == _mounts(container)[cache]
    assert cache not in _mounts(init)  # a mount there would hide what is to be copied
    assert init["image"] == container["image"]


@each_workload
def test_it_runs_as_the_images_user_and_may_do_no_more(workload: dict[str, Any]) -> None:
    pod = _pod(workload)
    (user,) = re.findall(r"--uid (\d+)", (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8"))
    assert pod["securityContext"]["runAsUser"] == int(user) > 0
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in [*pod["initContainers"], *pod["containers"]]:
        context = container["securityContext"]
        assert (context["allowPrivilegeEscalation"], context["capabilities"]) == (False, {"drop": ["ALL"]})
        assert container["resources"].keys() == {"requests", "limits"}


def test_every_process_runs_one_image() -> None:
    assert len({_container(workload)["image"] for workload in WORKLOADS.values()}) == 1


@each_workload
def test_what_is_mounted_exists(workload: dict[str, Any]) -> None:
    volumes = _volumes(workload)
    pod = _pod(workload)
    mounted = {mount["name"] for one in [*pod["initContainers"], *pod["containers"]] for mount in one["volumeMounts"]}
    assert mounted == volumes.keys()
    assert {one["configMap"]["name"] for one in volumes.values() if "configMap" in one} <= CONFIG_MAPS.keys()


def test_the_kustomization_has_every_manifest() -> None:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
    others = {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == others
