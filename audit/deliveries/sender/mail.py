"""A mail over SMTP."""

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import format_datetime, localtime

from audit.deliveries.sender.job import Answer, Job
from audit.deliveries.sender.texts import plain


def send(job: Job) -> Answer:
    """Send a message to all recipients in one mail. Raises SMTPException and OSError."""
    settings, timeout_s = job.settings, job.timeout_s
    host, port, security = settings["host"], settings["port"], settings["security"]
    context = ssl.create_default_context()
    if security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, port, local_hostname="tooltrail", timeout=timeout_s, context=context
        )
    else:
        server = smtplib.SMTP(host, port, local_hostname="tooltrail", timeout=timeout_s)
    with server:
        if security == "starttls":
            server.starttls(context=context)
        if settings["username"]:
            server.login(settings["username"], job.secrets["password"])
        refused = server.send_message(_mail(job))
    text = f"Accepted. Refused recipients: {', '.join(refused)}" if refused else "Accepted."
    return Answer(job.id, is_delivered=True, text=text, status=250)


def _mail(job: Job) -> EmailMessage:
    message, mail = job.message, EmailMessage()
    mail["Subject"] = message["title"]
    mail["From"] = job.settings["sender"]
    mail["To"] = ", ".join(job.settings["recipients"])
    mail["Date"] = format_datetime(localtime())
    # The same in each attempt: a reader's program shows a repeated mail once.
    mail["Message-ID"] = f"<{message['id']}.{job.channel_id}@tooltrail>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence is answered
    mail.set_content(plain(message))
    return mail
