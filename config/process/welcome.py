"""The text that `manage.py up` prints when the server is ready.

This module does not import Django, so that the supervisor stays small.
"""

import argparse
import json
import sys

from config.instance import SECRETS, load_secrets

_WELCOME = """
Tooltrail runs at {url}

  sign in    {user} / {password}
  API key    {api_key}
             (both are in {secrets}, and stay the same)

{what_comes}Record a call of your own, from another terminal in this folder:

  export TOOLTRAIL_URL={url}
  export TOOLTRAIL_API_KEY={api_key}
  uv run python -c 'from tooltrail import Trail; Trail().tool(len)("hello")'

Ctrl-C stops everything.
"""
_DEMO_COMES = """\
The demo's executor now makes a day of calls, in about a minute, and then a few a minute:
  {url}/traces/

"""
_WELCOME_NEW = """
Tooltrail runs at {url}

It has no tenant yet. From another terminal in this folder, with the same environment:

  uv run manage.py tenant create "Name" --admin you
  uv run manage.py changepassword you

Ctrl-C stops everything.
"""
_WELCOME_BACK = """
Tooltrail runs at {url}
Ctrl-C stops everything.
"""


def announce(url: str, options: argparse.Namespace) -> None:
    """Print the URL and how to use the server: for people, or as one line of JSON."""
    stored = load_secrets()
    facts = {"url": url} | {
        name: stored.get(f"{options.tenant}.{name}")
        for name in ("user", "password", "api_key", "tenant_id")
    }
    if options.json:
        text = json.dumps(facts) + "\n"
    elif options.tenant is None:
        text = (_WELCOME_NEW if options.new else _WELCOME_BACK).format(url=url)
    else:
        comes = _DEMO_COMES.format(url=url) if options.demo else ""
        text = _WELCOME.format(**facts, secrets=SECRETS, what_comes=comes)
    sys.stdout.write(text)
    sys.stdout.flush()
