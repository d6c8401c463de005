"""The API of `audit`."""

from ninja import Router

router = Router()
