"""`ralph notify`: tries the notifications of the settings."""

import json
import os

import click

from ralph.cli.base import Group
from ralph.cli.params import current_directory, notify_by, the_usual
from ralph.errors import ConfigError

_HOW = """Add to .ralph/settings.local.json one of:
  "notify": {"bell": true}
  "notify": {"command": "curl -sd \\"$RALPH_TEXT\\" ntfy.sh/my-topic"}
  "notify": {"urls": ["ntfy://my-topic"]}
Or for one run: ralph run --notify bell ..."""


@click.group(cls=Group)
def notify() -> None:
    """Try the notifications that tell you how a run ended, or that it asks something.

    Each message is one JSON object: a command reads it on standard input and finds it again in
    $RALPH_EVENT, $RALPH_OUTCOME, $RALPH_EXIT, $RALPH_REASON, $RALPH_TITLE, $RALPH_TEXT,
    $RALPH_TASK_ID, $RALPH_RUN_ID, $RALPH_WORKSPACE and $RALPH_NEXT.

    Examples:
      ralph notify test                          by each channel of the settings
      ralph notify test --notify bell            by this one instead
      ralph run -p "..." --notify 'say "$RALPH_TITLE"'
    """


@notify.command()
@notify_by
@the_usual
def test(*, notify: object, in_json: bool) -> int:
    """Send a message by each channel, and say what came of it.

    Examples:
      ralph notify test
      ralph notify test --notify ntfy://my-topic
      ralph notify test --json | jq '.channels[] | select(.error)'

    Exit codes: 0 all were sent, 1 one failed, 2 there is none.
    """
    from ralph.notify.message import TEST, About
    from ralph.notify.notifier import Notify, notify_problem
    from ralph.runner.notices import channels_of
    from ralph.settings.load import load
    from ralph.text.redact import know
    from ralph.text.secrets import secret_urls

    here = current_directory()
    settings = load(here, {"notify": (notify, "--notify")}).settings.notify
    channels = channels_of(settings)
    if not channels:
        raise ConfigError("nobody is to be notified: no command, URL or bell is set", _HOW)
    if without_extra := notify_problem(channels.urls):
        raise without_extra
    know(secret_urls(channels.urls))
    message = About(here).message(TEST, "a test", "Ralph can reach you.")
    found = Notify(channels, here, os.environ, lambda _: None).deliver(message)
    if in_json:
        told = [{"channel": name, "error": problem or None} for name, problem in found.items()]
        click.echo(json.dumps({"sent": not any(found.values()), "channels": told}))
    else:
        for name, problem in found.items():
            click.echo(f"{name}: {f'failed: {problem}' if problem else 'sent'}")
    return int(any(found.values()))
