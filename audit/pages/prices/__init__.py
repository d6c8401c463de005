"""Price lists: what a call or a unit of a tool costs, for admins."""
