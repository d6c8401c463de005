"""Where the server listens beside this page's address: {% load ports %} {% grpc_port as port %}."""

from django import template

from config import instance

register = template.Library()


@register.simple_tag
def grpc_port() -> str:
    """The port for OTLP over gRPC; empty if this installation does not serve it."""
    return str(instance.GRPC_PORT or "")
