"""An incoming webhook of Slack, or of a chat that takes the same document (Mattermost)."""

import json

from audit.deliveries.sender.http import post
from audit.deliveries.sender.job import Answer, Job
from audit.deliveries.sender.texts import slack_text


def send(job: Job) -> Answer:
    """Send a message. Raises as `post` does."""
    text = slack_text(job.message)
    document = {
        "text": text,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": text}},
            {"type": "context", "elements": [{"type": "plain_text", "text": job.message["id"]}]},
        ],
    }
    headers = {"Content-Type": "application/json; charset=utf-8"}
    body = json.dumps(document).encode()
    is_delivered, status, answer = post(job.secrets["url"], body, headers, job.timeout_s)
    return Answer(job.id, is_delivered, answer, status)
