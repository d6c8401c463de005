"""Polling tools over the API: tools that are called repeatedly on purpose."""

from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from audit.pages.repeats.acts import exclude_tool, include_tool
from audit.pages.show.router import router
from audit.queries.polling import (
    MAX_TOOLS,
    NAME_LENGTH,
    TooManyPollingToolsError,
    polling_tools,
)
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts
from tenants.api_reads import ListParams, Page, paged, reads
from tenants.models import Scope


class PollingToolPage(Page[str]):
    """Names of the polling tools. An act answers with all of them."""

    OLD_NAME = "tools"


class PollingToolBody(Body):
    """A tool, by its exact name."""

    tool: str = Field(min_length=1, max_length=NAME_LENGTH)


@reads(router, "/polling-tools", PollingToolPage, tag="figures", problems=("cursor", "limit"))
def list_polling_tools(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the tools that are excluded from the repeats, because they poll."""
    shown, after = paged("polling-tools", polling_tools(), params, str)
    return {"items": shown, "next": after}


@acts(
    router,
    "POST",
    "/polling-tools",
    PollingToolPage,
    scope=Scope.OPERATE,
    tag="figures",
    body=PollingToolBody,
    problems=("conflict",),
)
def add_polling_tool(act: Act) -> dict[str, Any]:
    """Exclude a tool from the repeats."""
    name = act.read(PollingToolBody).tool
    try:
        exclude_tool(act.tenant, act.actor, name)
    except TooManyPollingToolsError as error:
        message = f"At most {MAX_TOOLS} tools can be excluded."
        raise ProblemError("conflict", message) from error
    return _page()


@acts(
    router,
    "POST",
    "/polling-tools/remove",
    PollingToolPage,
    scope=Scope.OPERATE,
    tag="figures",
    body=PollingToolBody,
    problems=("not_found",),
)
def remove_polling_tool(act: Act) -> dict[str, Any]:
    """Include a tool in the repeats again."""
    if not include_tool(act.tenant, act.actor, act.read(PollingToolBody).tool):
        raise ProblemError("not_found", "This tool is not excluded.")
    return _page()


def _page() -> dict[str, Any]:
    return {"items": polling_tools(), "next": None}
