"""The Helm chart, rendered with Helm's engine and compared with Kubernetes' schemas."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from config.instance import BASE_DIR, QUEUES
from tests.support.management_commands import parse

_UV = os.environ.get("UV") or shutil.which("uv")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_UV is None, reason="Helm's engine is fetched with uv: not here"),
]

CHART = BASE_DIR / "docs" / "deployment" / "helm" / "tooltrail"
SCRIPT = BASE_DIR / "tests" / "support" / "helm_render.py"
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.test/tooltrail", "tag": "1.2"},
    "imagePullSecrets": [{"name": "registry"}],
    "hosts": ["tools.test", "trail.test"],
    "secrets": {"metrics": "trail-metrics"},
    "web": {"grpc": True, "podAnnotations": {"a": "b"}, "nodeSelector": {"disk": "ssd"}},
    "worker": {
        "replicas": 3,
        "queues": ["ledger", "default", "deliveries,streams", "reports"],
        "storage": {"className": "fast"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
    "service": {"annotations": {"c": "d"}},
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"e": "f"}, "tlsSecret": "t"},
    "env": [{"name": "TOOLTRAIL_LOG_LEVEL", "value": "WARNING"}],
    "volumes": [{"name": "token", "secret": {"secretName": "token"}}],
    "volumeMounts": [{"name": "token", "mountPath": "/run/token", "readOnly": True}],
}
UNKNOWN_MEMBER = {"env": [{"name": "A", "vlaue": "b"}]}
REFUSED: list[dict[str, Any]] = [
    {"hosts": []},
    {"web": {"replicas": "two"}},
    {"secrets": {"database": ""}},
    {"wbe": {}},
]


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    """What the chart renders with its defaults, with all its values, and with invalid ones."""
    script = ["python", str(SCRIPT), str(CHART)]
    run = subprocess.run(
        [str(_UV), "run", "--quiet", "--isolated", "--only-group", "helm", *script],
        cwd=BASE_DIR,
        input=json.dumps([{}, EVERYTHING, *REFUSED, UNKNOWN_MEMBER]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    rendered: list[dict[str, Any]] = json.loads(run.stdout)
    return rendered


@pytest.fixture(scope="module", params=[0, 1], ids=["defaults", "every value"])
def objects(answers: list[dict[str, Any]], request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    answer = answers[request.param]
    assert answer["problems"] == []
    found: list[dict[str, Any]] = answer["objects"]
    return found


def pods(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The specifications of the pods by the kind of what makes them."""
    makers = [each for each in objects if "template" in each["spec"]]
    return {each["kind"]: each["spec"]["template"]["spec"] for each in makers}


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_objects_are_valid_and_complete(objects: list[dict[str, Any]]) -> None:
    kinds = [each["kind"] for each in objects if each["kind"] != "Ingress"]
    assert sorted(kinds) == [
        *("Deployment", "Job", "PodDisruptionBudget", "PodDisruptionBudget"),
        *("Service", "Service", "StatefulSet"),
    ]
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))


def test_invalid_values_are_refused(answers: list[dict[str, Any]]) -> None:
    for values, answer in zip(REFUSED, answers[2:-1], strict=True):
        assert "refused" in answer, values


def test_an_invalid_object_is_noticed(answers: list[dict[str, Any]]) -> None:
    # `env` is passed on as it is, so it can name a member that Kubernetes does not have.
    kinds = {problem.partition(" ")[0] for problem in answers[-1]["problems"]}
    assert kinds == {"Deployment", "Job", "StatefulSet"}


def test_every_container_is_locked_down(objects: list[dict[str, Any]]) -> None:
    (uid,) = re.findall(r"^USER (\d+):", (BASE_DIR / "Containerfile").read_text(), re.MULTILINE)
    for pod in pods(objects).values():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsUser"] == int(uid)
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in containers(pod):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert {"requests", "limits"} <= container["resources"].keys()


def test_pods_have_only_the_database_roles_they_need(objects: list[dict[str, Any]]) -> None:
    mounted = {
        kind: {item["key"] for v in pod["volumes"] for item in v.get("secret", {}).get("items", [])}
        for kind, pod in pods(objects).items()
    }
    assert mounted == {
        "Deployment": {"DATABASE_URL"},
        "Job": {"DATABASE_URL", "DATABASE_OWNER_URL"},
        "StatefulSet": {"DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_KEEPER_URL"},
    }
    # No secret is in the environment, and every file that a variable names is mounted.
    for pod in pods(objects).values():
        for container in containers(pod):
            folders = [mount["mountPath"] for mount in container["volumeMounts"]]
            for variable in container["env"]:
                if variable["value"].startswith("/"):
                    assert str(Path(variable["value"]).parent) in folders
                else:
                    assert "URL" not in variable["name"]
                    assert "SECRET" not in variable["name"]


def test_variables_and_arguments_exist(objects: list[dict[str, Any]]) -> None:
    documented = (BASE_DIR / "docs" / "running.md").read_text()
    for pod in pods(objects).values():
        for container in containers(pod):
            parse(container["args"])
            for variable in container["env"]:
                assert f"`{variable['name'].removesuffix('_FILE')}`" in documented, variable


def test_workers_serve_all_queues_and_signing_waits_for_no_other(
    objects: list[dict[str, Any]],
) -> None:
    served = [
        container["args"][container["args"].index("--queues") + 1].split(",")
        for container in pods(objects)["StatefulSet"]["containers"]
    ]
    assert sorted(queue for queues in served for queue in queues) == sorted(QUEUES)
    assert ["ledger"] in served


def test_services_of_stateful_sets_exist(objects: list[dict[str, Any]]) -> None:
    services = {each["metadata"]["name"] for each in objects if each["kind"] == "Service"}
    (workers,) = [each for each in objects if each["kind"] == "StatefulSet"]
    assert workers["spec"]["serviceName"] in services


def test_selectors_choose_their_pods(objects: list[dict[str, Any]]) -> None:
    labels = [
        each["spec"]["template"]["metadata"]["labels"].items()
        for each in objects
        if "template" in each["spec"]
    ]
    for each in objects:
        selector = each["spec"].get("selector")
        if selector is None:
            continue
        wanted = selector.get("matchLabels", selector).items()
        assert sum(wanted <= pod for pod in labels) == 1, each["metadata"]["name"]


def test_a_pod_is_killed_only_after_it_has_drained(objects: list[dict[str, Any]]) -> None:
    pod = pods(objects)["Deployment"]
    (container,) = pod["containers"]
    (drain,) = [each for each in container["env"] if each["name"] == "TOOLTRAIL_DRAIN_S"]
    probe = container["readinessProbe"]
    # Traffic ends once the probe has failed; stopping takes up to 5 s (config.process.supervise).
    assert int(drain["value"]) > probe["periodSeconds"] * probe["failureThreshold"]
    assert pod["terminationGracePeriodSeconds"] >= int(drain["value"]) + 5
