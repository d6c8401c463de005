"""The pages of `audit`: one module per page."""
