"""The dashboard: what a project remembers, for people. Pages are rendered on the server, without a build step.

html.py          elements made from values: the one escaping path
frame.py         what every page has around it: head, navigation, headers that forbid everything not needed
view.py          one visit: who looks at which project, links, and calls of operations as a person
parts.py         what several pages show: times, tags, differences, bars, pages of a list
pages/           one file per subject; each is a function from a View to a DrawnPage
sign_in.py       how people come in: a token or a code once, then a cookie
app.py           from the gate's routes to all of these; the table of what people can change; streams of changes
static/          style sheet and scripts, served as they are
"""
