"""The API of `tools_registry`."""

from ninja import Router

router = Router()
