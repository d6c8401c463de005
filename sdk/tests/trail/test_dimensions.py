"""Who makes the calls, in what and for whom: named in `trace()` or by OpenTelemetry's variables."""

from collections.abc import Iterator

import pytest
from tooltrail import scope
from tooltrail.testing import MemoryTrail


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process is deployed as OpenTelemetry's variables say."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    attributes = "service.version=7.1, deployment.environment.name=pre%20production,odd"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
    caches = (scope.deployed, scope._deployed_text)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


def test_dimensions_are_parts_of_the_context_and_a_conversation_is_a_run(
    trail: MemoryTrail,
) -> None:
    with (
        trail.trace(agent="concierge", agent_version=2, principal="ada", conversation="c-7"),
        trail.record("search"),
    ):
        pass
    for event in trail.events:
        assert event["context"] == {
            "agent": "concierge",
            "agent_version": "2",
            "principal": "ada",
        }
        assert event["run_id"] == "c-7"


def test_another_agent_inherits_principal_and_service_but_no_version_and_model(
    trail: MemoryTrail,
) -> None:
    outer = {"agent": "concierge", "agent_version": "2", "model": "m-1", "service": "shop"}
    with trail.trace(context=outer, principal="ada"):
        with trail.trace(context={"agent": "helper"}), trail.record("search"):
            pass
        with trail.trace(model="m-2"), trail.record("search"):
            pass
    inside, same = trail.events[0]["context"], trail.events[2]["context"]
    assert inside == {"agent": "helper", "service": "shop", "principal": "ada"}
    assert same == outer | {"model": "m-2", "principal": "ada"}


def test_variables_of_opentelemetry_name_service_and_environment(
    trail: MemoryTrail, deployed: None
) -> None:
    with trail.record("alone"):
        pass
    with trail.trace(agent="concierge", environment="test"), trail.record("traced"):
        pass
    named = {"service": "shop", "service_version": "7.1", "environment": "pre production"}
    alone, traced = trail.events[0]["context"], trail.events[2]["context"]
    assert alone == named
    assert traced == named | {"agent": "concierge", "environment": "test"}
