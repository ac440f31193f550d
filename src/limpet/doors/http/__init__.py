"""The HTTP server: MCP, JSON routes, dashboard and health on one port, for one person or for a team.

server.py        wires everything together and listens
gate.py          in front of everything: Host and Origin, authentication, rates, route, project
policy.py        the routes, and the level that each route and MCP method needs
principal.py     who a request comes from, and what they may do
credentials.py   from the Authorization header to a principal: the run's own token, stored tokens, OAuth
oauth.py         access tokens of an identity provider, checked against its published keys
connections.py   how many connections there are, and how slowly a request may come
capacity.py      worker threads, calls per principal, quotas per tenant
projects.py      the open projects of each tenant, over one store
mcp.py           MCP at /mcp; fast_path.py for plain tool calls
api.py           JSON at /api/v1, one route per operation; openapi.py describes it
metrics.py       numbers at /metrics; health.py whether the store answers, at /health
workers.py       several processes on one port
refusals.py      every refusal, with its sentence
"""
