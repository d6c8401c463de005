"""The text that `manage.py up` prints when the server is ready.

This module does not import Django, so that the supervisor stays small.
"""

import argparse
import json
import sys

from config.instance import COMMAND, IS_CHECKOUT, SECRETS, load_secrets

_WELCOME = """
Tooltrail is running at {url}

  sign in    {user} / {password}
  API key    {api_key}
             (both are stored in {secrets} and do not change)

{what_comes}To record a call of your own, run in another terminal{in_this_folder}:

  export TOOLTRAIL_URL={url}
  export TOOLTRAIL_API_KEY={api_key}
  {python} -c 'from tooltrail import Trail; Trail().tool(len)("hello")'

Ctrl-C stops everything.
"""
_DEMO_COMES = """\
The demo executor now makes a day's calls in about a minute, then a few calls per minute:
  {url}/traces/

"""
_WELCOME_NEW = """
Tooltrail is running at {url}

There is no tenant yet. Create one in another terminal, in this environment{in_this_folder}:

  {command} tenant create "Name" --admin you
  {command} changepassword you

Ctrl-C stops everything.
"""
_WELCOME_BACK = """
Tooltrail is running at {url}
Ctrl-C stops everything.
"""


def announce(url: str, options: argparse.Namespace) -> None:
    """Print the URL and how to use the server: for people, or as one line of JSON."""
    stored = load_secrets()
    words = {"command": COMMAND, "python": sys.executable, "in_this_folder": ""}
    if IS_CHECKOUT:
        words = {"command": f"uv run {COMMAND}", "python": "uv run python"}
        words["in_this_folder"] = ", in this folder"
    facts = {"url": url} | {
        name: stored.get(f"{options.tenant}.{name}")
        for name in ("user", "password", "api_key", "tenant_id")
    }
    if options.json:
        text = json.dumps(facts) + "\n"
    elif options.tenant is None:
        text = (_WELCOME_NEW if options.new else _WELCOME_BACK).format(url=url, **words)
    else:
        comes = _DEMO_COMES.format(url=url) if options.demo else ""
        text = _WELCOME.format(**facts, **words, secrets=SECRETS, what_comes=comes)
    sys.stdout.write(text)
    sys.stdout.flush()
