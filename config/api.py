"""The API object with its routers and error handlers.

`config.openapi` describes the API.
"""

from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import ValidationError

from audit.intake.api import router as audit_router
from audit.pages.actions import api as actions
from audit.pages.alerts import api as alerts
from audit.pages.alerts import maintenance_api, trials_api
from audit.pages.apart import api as apart
from audit.pages.apart import arguments_api, compare_api
from audit.pages.approvals import api as approvals
from audit.pages.boards import api as boards
from audit.pages.calls import api as calls
from audit.pages.calls import handoff_api, personal_api
from audit.pages.channels import api as channels
from audit.pages.costs import api as costs
from audit.pages.definitions import api as definitions
from audit.pages.evidence.api import router as evidence_router
from audit.pages.inbox import act_api as inbox_acts
from audit.pages.inbox import api as losses
from audit.pages.incidents import api as incidents
from audit.pages.ledger import api as ledger
from audit.pages.ledger import check_api
from audit.pages.notes import api as notes
from audit.pages.prices import api as prices
from audit.pages.repeats import api as repeats
from audit.pages.reports import schedule_api
from audit.pages.reports.api import router as reports_router
from audit.pages.samples import api as samples
from audit.pages.settings import api as settings_api
from audit.pages.settings import floor_api, retention_api, witnesses_api
from audit.pages.sharing import api as sharing
from audit.pages.show import agents_api, figures_api
from audit.pages.show.router import router as read_router
from audit.pages.streams import api as streams
from audit.pages.streams import pull_api
from audit.pages.tools import analysis_api, drift_api, effect_api, regression_api, replay_api
from audit.pages.tools import draft_api as publishing_api
from audit.pages.traces import api as traces
from audit.pages.traces import compare_api as trace_compare_api
from config.http.errors import RETRY_AFTER_SECONDS
from config.http.problems import KINDS, ProblemError, problem
from config.postgresql.schema import why_unavailable
from tenants import service_api
from tenants.accounts.settings import router as sign_in_router
from tenants.api_auth import answer_refusal
from tenants.identity.pages import router as identity_router
from tenants.identity.sso_only import router as sso_only_router
from tenants.key_api import router as key_router
from tenants.keys import KeyRefused
from tenants.member_api import router as member_router
from tools_registry import act_api, draft_api
from tools_registry import read_api as tools
from tools_registry.api import router as registry_router
from tools_registry.exchange import api as exchange
from tools_registry.exchange import comparison_api

OPERATIONS = (
    actions,
    agents_api,
    alerts,
    maintenance_api,
    trials_api,
    apart,
    arguments_api,
    compare_api,
    approvals,
    boards,
    calls,
    handoff_api,
    personal_api,
    channels,
    costs,
    definitions,
    drift_api,
    effect_api,
    figures_api,
    ledger,
    check_api,
    losses,
    notes,
    prices,
    regression_api,
    inbox_acts,
    repeats,
    schedule_api,
    settings_api,
    witnesses_api,
    sharing,
    streams,
    pull_api,
    incidents,
    retention_api,
    floor_api,
    samples,
    service_api,
    publishing_api,
    replay_api,
    analysis_api,
    traces,
    trace_compare_api,
    tools,
    act_api,
    draft_api,
    exchange,
    comparison_api,
)
"""The modules whose operations are added to a router by being imported."""

api = NinjaAPI(
    title="Tooltrail", version="1", urls_namespace="api", docs_url=None, openapi_url=None
)
api.add_router("", audit_router)
api.add_router("", read_router)
api.add_router("", reports_router)
api.add_router("", evidence_router)
api.add_router("", registry_router)
api.add_router("", key_router)
api.add_router("", member_router)
api.add_router("", sign_in_router)
api.add_router("", identity_router)
api.add_router("", sso_only_router)
api.add_exception_handler(KeyRefused, answer_refusal)  # type: ignore[arg-type]  # instances only


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def answer_unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    """503: the database is away or newer than this code, and nothing has been acknowledged."""
    return problem(
        "unavailable",
        f"{why_unavailable(error)} Try again.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


@api.exception_handler(ProblemError)
def answer_problem(request: HttpRequest, error: ProblemError) -> HttpResponse:
    """A request that an operation rejected."""
    return problem(error.code, error.detail, **error.more)


@api.exception_handler(Http404)
def answer_not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    """404 without Django's message."""
    return problem("not_found", "Not found.")


@api.exception_handler(ValidationError)
def answer_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """422, with the first parameter that is wrong."""
    first = error.errors[0]
    name = str(first["loc"][-1])
    code = name if name in KINDS and KINDS[name].status == 422 else "parameter"
    return problem(code, f"{name}: {first['msg']}.", parameter=name)
