"""A recorded call as a curl command. curl must take what is written there as it is: no file for an @, no series of
URLs for brackets."""

import shlex

from postern.core.history.invocation import Invocation
from postern.usecases.history.code.recorded import repeated
from postern.usecases.history.code.shell import LONGEST_ARGUMENT, argument, plain, printed


def curl(base_url: str, invocation: Invocation) -> str:
    call = repeated(base_url, invocation)
    if not invocation.path.startswith(b"/"):
        return f"curl --globoff --url {argument(call.url.encode())}"
    # `-X HEAD` would wait for the body that never comes.
    method = "--head" if call.method == "HEAD" else f"-X {shlex.quote(call.method)}"
    lines = [f"curl {method} --globoff --url {argument(call.url.encode())}"]
    for name, value in call.headers:
        header = name.encode() + (b": " + value if value else b";")
        lines.append(f"-H {argument(header)}")
    if call.body and not call.has_type:
        lines.append("-H Content-Type:")  # or curl would call it a form
    if call.body_gone:
        lines.append("--data-raw THE_BODY_IS_NO_LONGER_KEPT")
    elif call.body and len(call.body) <= LONGEST_ARGUMENT and (text := plain(call.body)) is not None:
        lines.append(f"--data-raw {shlex.quote(text)}")
    elif call.body:
        lines[0] = f"{printed(call.body)} | {lines[0]}"
        lines.append("--data-binary @-")
    return " \\\n  ".join(lines)
