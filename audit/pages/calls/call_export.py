"""Export of the list of calls."""

from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.exports.calls import FORMS, chunks
from audit.pages.show.requested_query import invalid, read_query
from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view


@require_safe
@tenant_page()
def call_export(request: TenantRequest, kind: str) -> HttpResponseBase:
    """Export all calls that match the URL's query as NDJSON, CSV or Parquet.

    Every member may export. The file holds what the pages show the member: without the permission
    to see payloads, it has no error messages. The audit log records an export once a minute; with
    messages, once per query and minute.
    """
    if kind not in FORMS:
        raise Http404("no such form of export")
    query = read_query(request)
    if query.problems:  # an export must not hold more than was requested
        return HttpResponse(invalid(query, "exported"), status=400, content_type="text/plain")
    now, form = timezone.now(), FORMS[kind]
    with_messages = request.membership.sees_payloads
    document_chunks = chunks(request.tenant.id, query.wanted, now, with_messages=with_messages)
    if request.method != "HEAD":
        # Only exports with messages are recorded per query: a viewer must not grow the ledger.
        record_view(
            request.tenant.id,
            request.user,
            "call.export",
            kind,
            apart=str(query) if with_messages else "",
            query=query.on_record(now),
        )
    name = f"calls-{request.tenant.slug}-{now:%Y%m%dT%H%M%SZ}.{kind}"
    return stream(request.tenant.id, form.write(document_chunks), form.content_type, file_name=name)
