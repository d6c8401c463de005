"""Where a signed-in user starts."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect


def home(request: HttpRequest) -> HttpResponse:
    """Send to the traces, which ask for a sign-in where there is none."""
    return redirect("trace_list")
