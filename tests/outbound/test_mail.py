"""Mail goes over TLS to the server that the certificate names, and to no other one."""

from pathlib import Path

import pytest

from postern.core.address import Allowlist
from postern.core.watch.channels import read_mail_server
from postern.outbound import mail
from postern.outbound.guard import FetchFailed, Guard
from support.certificates import certificate
from support.mail import mail_server


async def nearby(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


GUARD = Guard(Allowlist.parse(["127.0.0.1"]), nearby)


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_mail_goes_over_tls_only_to_the_server_that_a_trusted_certificate_names(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, trusting = certificate(tmp_path, "mail.test")
    async with mail_server(tls=serving, implicit=scheme == "smtps") as (port, taken):

        async def send(host: str) -> None:
            server = read_mail_server(f"{scheme}://user:word@{host}:{port}?from=postern@shop.example")
            await mail.send_mail(GUARD, server, "ops@shop.example", "subject", "text", "key")

        for host, trusted in (("mail.test", False), ("other.test", True)):
            with monkeypatch.context() as patched:
                if trusted:
                    patched.setattr(mail, "trusted_by_system", lambda: trusting)
                with pytest.raises(FetchFailed, match="certificate is not valid"):
                    await send(host)
        monkeypatch.setattr(mail, "trusted_by_system", lambda: trusting)
        await send("mail.test")
        assert len(taken) == 1
