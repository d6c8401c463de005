"""The list of traces."""

from django.http import HttpResponse
from django.shortcuts import render

from tenants.access import TenantRequest, tenant_page


@tenant_page()
def trace_list(request: TenantRequest) -> HttpResponse:
    """The traces of the session's tenant, newest first."""
    return render(request, "audit/trace_list.html")
