"""Mail by SMTP, to a server that the gateway may connect to. It uses the standard library's client in a thread: mails are few."""

import asyncio
import smtplib
import socket
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any

from postern.core.watch.channels import MailServer
from postern.outbound.client import trusted_by_system
from postern.outbound.guard import FetchFailed, Guard

LONGEST = 10.0
"""Seconds for a whole mail."""


async def send_mail(
    guard: Guard, server: MailServer, recipients: str, subject: str, text: str, key: str
) -> None:
    """Raises ``FetchFailed``. ``key`` stays the same when the mail is sent again."""
    message = EmailMessage()
    message["From"], message["To"] = server.sender, recipients
    message["Subject"], message["Date"] = subject, formatdate()
    message["Message-ID"] = f"<{key}@{server.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    made: list[smtplib.SMTP] = []
    try:
        async with asyncio.timeout(LONGEST):
            addresses = await guard.addresses(server.host, server.port)
            await asyncio.to_thread(_send, server, addresses[0], message, made)
    except (smtplib.SMTPException, OSError, ValueError) as error:  # time-outs included
        raise FetchFailed("connection_failed", f"the mail server {_said(error)}") from error
    finally:
        for connection in made:  # ends the thread if it still waits for the server
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)


def _said(error: Exception) -> str:
    """Our own words: servers quote what they were sent, and that may be a secret."""
    match error:
        case TimeoutError():
            return "does not answer in time"
        case smtplib.SMTPResponseException():
            return f"answered {error.smtp_code}"
        case smtplib.SMTPRecipientsRefused():
            return "takes no mail for them"
        case ssl.SSLCertVerificationError():
            return "is not trusted: its certificate is not valid for this name"
        case smtplib.SMTPNotSupportedError() | ssl.SSLError():
            return "offers no secure connection (STARTTLS), or no way to sign in"
        case _:
            return "is not there, or the connection broke off"


def _send(server: MailServer, address: str, message: EmailMessage, made: list[smtplib.SMTP]) -> None:
    kind: Any = smtplib.SMTP_SSL if server.tls else smtplib.SMTP

    class ToJudged(kind):  # type: ignore[misc]
        """Connects to the address that the guard judged; the certificate is checked against the name."""

        def _get_socket(self, _host: str, port: int, timeout: float) -> Any:
            made.append(self)
            self.sock = super()._get_socket(address, port, timeout)
            return self.sock

    secure = {"context": trusted_by_system()} if server.tls else {}
    with ToJudged(server.host, server.port, timeout=LONGEST, **secure) as connection:
        connection.ehlo()
        if not server.tls and (server.username or connection.has_extn("starttls")):
            connection.starttls(context=trusted_by_system())  # a password does not go out in the clear
        if server.username:
            connection.login(server.username, server.password)
        connection.send_message(message)
