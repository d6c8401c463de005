"""The graph of a trace: who made which of its calls."""

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from audit.pages.show.graph_view import shown_graph
from audit.queries.call_graph import graph_of_trace
from tenants.access import TenantRequest, tenant_page


@require_safe
@tenant_page()
def trace_graph(request: TenantRequest, trace_id: str) -> HttpResponse:
    """Show who made which calls of a trace; 404 if it has none."""
    graph = graph_of_trace(trace_id)
    if not graph.calls:
        raise Http404("no such trace")
    context = {"trace_id": trace_id, "graph": shown_graph(graph)}
    return render(request, "traces/trace_graph.html", context)
