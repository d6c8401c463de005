"""The saved views of a page: {% load views %} {% page_views "traces" as kept %}."""

from django import template
from django.template import Context

from audit.pages.show import saved_views
from audit.pages.show.saved_views import PageViews

register = template.Library()


@register.simple_tag(takes_context=True)
def page_views(context: Context, page: str, query: str | None = None) -> PageViews:
    """The views of a page that the member is offered; `query` is what it lists now.

    By default that is what follows the ? of its address. At most two statements.
    """
    request = context["request"]
    kept = saved_views.kept_query(request) if query is None else query
    return saved_views.page_views(request, page, kept)
