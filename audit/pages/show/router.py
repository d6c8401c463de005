"""The API that reads: the questions of the pages, asked by programs.

Each operation asks `audit.queries` what its page asks, and gives what the page's export gives; what
all have in common is `tenants.api_reads`'. Errors are problem details (`config.http.problems`).
"""

from ninja import Router

router = Router()
"""Operations are added to it by the modules of this package; `config.api` imports them."""
