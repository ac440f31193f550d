"""The HTTP server: MCP, JSON routes and health on one port, for one person or for a team.

server.py        puts everything together and listens
gate.py          in front of everything: Host and Origin, who it is, how often, which door, which project
policy.py        the table: every door, method and operation, and what it takes to use it
principal.py     who a request comes from, and what they may do
credentials.py   from the Authorization header to a principal: the run's own token, stored tokens, OAuth
oauth.py         access tokens of an identity provider, checked against its published keys
rates.py         how often and how much at once a principal may call; how much a tenant may keep
rooms.py         the memory of each tenant and project, over one store
mcp.py           MCP at /mcp
api.py           JSON at /api/v1, one route an operation; openapi.py describes it
observed.py      numbers at /metrics
workers.py       several processes on one port
refusals.py      every sentence of a refusal
"""
