"""Figures of a range as a file. The exports of all pages with figures share it."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpResponse
from django.utils import timezone

from audit.exports.forms import Form
from audit.pages.show.range_bar import requested_range
from audit.queries.time_range import TimeRange
from tenants.access import TenantRequest
from tenants.actions import record_view


def figures_file(
    request: TenantRequest,
    kind: str,
    forms: Mapping[str, Form],
    documents: Callable[[TimeRange], list[dict[str, Any]]],
    *,
    of: str,
    action: str,
) -> HttpResponse:
    """Export the documents of the URL's range in the form `kind`.

    The audit log records it as `action`. The file's name begins with `of`. Raises Http404 for an
    unknown form.
    """
    if kind not in forms:
        raise Http404("no such form of export")
    now = timezone.now()
    requested = requested_range(request, now)
    if requested.problem:  # an export must hold exactly what was requested
        return HttpResponse(requested.problem, status=400, content_type="text/plain")
    contents = documents(requested.range)
    if request.method != "HEAD":
        record_view(request.tenant.id, request.user, action, kind, query=request.GET.urlencode())
    form = forms[kind]
    name = f"{of}-{request.tenant.slug}-{now:%Y%m%dT%H%M%SZ}.{kind}"
    return HttpResponse(
        b"".join(form.write(iter([contents]))),
        content_type=form.content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
