"""`tooltrail check`: compares definitions of tools with the contracts that a server has published.

`command` is the command line. `definitions`, `modules` and `mcp_servers` read the definitions,
`judging` asks the server about them, and `report` says what that means. `text`, `sarif` and `junit`
write the report.
"""
