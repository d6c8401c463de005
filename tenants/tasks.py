"""The worker's tasks for people: mails."""

from procrastinate.contrib.django import app

from config.postgresql.retry import AGAIN
from tenants.mail import outgoing
from tenants.passwords.links import mail_links


@app.task(queue="deliveries", retry=outgoing.LATER)
def send_mail(box: str) -> None:
    """Send a mail, or try again later."""
    text = outgoing.read(box)
    if text is not None:
        outgoing.send(text)


@app.task(queue="deliveries", retry=AGAIN)
def mail_password_links(box: str) -> None:
    """Mail a link for a new password to each account of an address."""
    address = outgoing.read(box)
    if address is not None:
        mail_links(address)
