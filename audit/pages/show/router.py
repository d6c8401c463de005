"""The read API: the data of the pages for programs.

Each operation runs the same `audit.queries` as its page and returns the same as the page's export.
`tenants.api_reads` has what all operations share. Errors are problem details
(`config.http.problems`).
"""

from ninja import Router

router = Router()
"""The modules of this package add operations to it. `config.api` imports them."""
