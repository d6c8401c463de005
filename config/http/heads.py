"""HEAD under `/api/`: as GET, without the body. The operations know only GET."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from config.http.problems import API


class HeadMiddleware:
    """Runs HEAD as GET, and drops the body. A stream is not begun."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method != "HEAD" or not request.path.startswith(API):
            return self.get_response(request)
        request.method = "GET"
        try:
            response = self.get_response(request)
        finally:
            request.method = "HEAD"
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = []  # the stream is closed with the response
        elif isinstance(response, HttpResponse):
            response.content = b""  # Content-Length stays
        return response
