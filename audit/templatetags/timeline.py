"""Shares of a width for SVG: {% load timeline %} <rect x="{{ tick.x|svg_share }}"/>."""

from django import template

from audit.waterfall import svg_share

register = template.Library()
register.filter("svg_share", svg_share)
