"""The pages of `audit`, one module a page."""
