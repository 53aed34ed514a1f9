"""Keys that are fetched: an accepted call does not wait for them when they are at hand, and nobody who calls decides how
often they are asked for."""

import asyncio
import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from postern.core.address import Allowlist
from postern.core.fetched import Fetched
from postern.core.problems import FetchTrouble, Refused
from postern.usecases.calls import intake
from postern.usecases.runtime import key_sets
from postern.usecases.runtime.key_sets import (
    ASKED_EVERY,
    KEPT_FOR,
    MOST_NAMED,
    MOST_OF_ALL,
    RENEWED_AFTER,
    KeySets,
)
from postern.usecases.shapes import validated
from postern.usecases.signatures import signatures, subscriptions
from postern.usecases.signatures.signatures import SignatureTest
from postern.wiring.gateway import Outside
from stand_in import Received, Reply, stand_in
from support.house import OWNER, House, a_house
from support.rooms import Clock
from support.waiting import until

pytestmark = pytest.mark.anyio

KEYS = "https://keys.example.com/certs"
SCHEME = {
    "signature": "header:Authorization",
    "algorithm": "jwt_rs256",
    "keysFrom": KEYS,
    "bodyClaim": "digest",
}
BODY = b'{"id":"evt_1"}'
SENDER = rsa.generate_private_key(65537, 2048)


def text_of(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def set_of(*key_ids: str) -> bytes:
    public = SENDER.public_key().public_numbers()
    key = {"kty": "RSA", "n": text_of(public.n.to_bytes(256)), "e": "AQAB"}
    return json.dumps({"keys": [key | {"kid": key_id} for key_id in key_ids]}).encode()


def token(house: House, key_id: str = "k1", body: bytes = BODY) -> dict[str, str]:
    claims = {"aud": "me", "exp": house.gateway.clock() + 600, "digest": sha256(body).hexdigest()}
    parts = [text_of(json.dumps(one).encode()) for one in ({"alg": "RS256", "kid": key_id}, claims)]
    signature = SENDER.sign(".".join(parts).encode(), padding.PKCS1v15(), SHA256())
    return {"Authorization": "Bearer " + ".".join([*parts, text_of(signature)])}


class Sender:
    """Where the keys are: what it answers, how often it was asked, and whether it answers at all."""

    def __init__(self, body: bytes = b"", status: int = 200) -> None:
        self.body, self.status = body, status
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def __call__(self, url: str, *, timeout: float, **how: Any) -> Fetched:
        self.asked.append(url)
        try:
            async with asyncio.timeout(timeout):
                await self.answers.wait()
        except TimeoutError:
            raise FetchTrouble("no complete answer", None) from None
        return Fetched(self.status, (), self.body)


@pytest.fixture
def clock(house: House) -> Clock:
    clock = Clock()
    house.gateway.runtime.key_sets = KeySets(clock)
    return clock


async def webhook(house: House, sender: Sender) -> Any:
    house.gateway.runtime.key_sets.fetch = sender
    how = {"method": "hmac", "provider": "custom", "secret": "me", "scheme": SCHEME}
    return await house.webhook(authentication=how)


async def code(house: House, hook: Any, **of: str) -> str:
    reply = await house.call(hook, BODY, headers=token(house, **of))
    return "accepted" if reply.status == 200 else reply.json["code"]


async def test_the_first_call_waits_for_the_keys_and_the_others_do_not(house: House, clock: Clock) -> None:
    sender = Sender(set_of("k1"))
    hook = await webhook(house, sender)
    sender.answers.clear()
    waiting = [asyncio.create_task(code(house, hook)) for _ in range(3)]
    await asyncio.sleep(0)
    sender.answers.set()
    assert await asyncio.gather(*waiting) == ["accepted"] * 3
    sender.answers.clear()  # nobody asks any more
    assert await code(house, hook) == "accepted"
    assert sender.asked == [KEYS]
    (stored, *_) = await house.history(webhook_id=hook.id)
    assert stored.matched == "main"


async def test_unknown_keys_ask_once_in_a_while_and_a_new_key_is_found(house: House, clock: Clock) -> None:
    sender = Sender(set_of("k1"))
    hook = await webhook(house, sender)
    assert await code(house, hook) == "accepted"
    sender.body = set_of("k1", "k2")  # it rotates
    assert [await code(house, hook, key_id="k2") for _ in range(3)] == ["signature_mismatch"] * 3
    clock.now += ASKED_EVERY
    assert await code(house, hook, key_id="k2") == "accepted"
    for number in range(5):
        assert await code(house, hook, key_id=f"x{number}") == "signature_mismatch"
    assert len(sender.asked) == 2
    sender.body = set_of("k2")
    clock.now += ASKED_EVERY
    await code(house, hook, key_id="y")
    assert await code(house, hook, key_id="k1") == "signature_mismatch", "it is no more in the set"


async def test_what_cannot_be_fetched_is_503_and_is_asked_for_again_later(
    house: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_sets, "FETCH_WITHIN", 0.01)
    sender = Sender(set_of("k1"), status=500)
    hook = await webhook(house, sender)
    assert [await code(house, hook) for _ in range(3)] == ["signing_keys_unavailable"] * 3
    clock.now += ASKED_EVERY
    sender.answers.clear()  # now it does not answer at all
    assert [await code(house, hook) for _ in range(2)] == ["signing_keys_unavailable"] * 2
    assert len(sender.asked) == 2
    (item, *_) = await house.history(webhook_id=hook.id)
    assert item.code == "signing_keys_unavailable"
    explained = await signatures.explain(house.gateway, OWNER, item.id)
    assert "could not be fetched" in explained.explanation, "its token was not kept, and is not judged again"
    clock.now += ASKED_EVERY
    sender.answers.set()
    sender.status = 200
    assert await code(house, hook) == "accepted"


async def test_only_some_wait_and_no_large_bodies(
    house: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = Sender(set_of("k1"))
    hook = await webhook(house, sender)
    monkeypatch.setattr(intake, "LARGEST_WAITING", len(BODY) - 1)
    assert await code(house, hook) == "signing_keys_unavailable"
    monkeypatch.undo()
    monkeypatch.setattr(key_sets, "MOST_WAITING", 1)
    sender.answers.clear()
    first = asyncio.create_task(code(house, hook))
    await until(lambda: sender.asked)
    assert await code(house, hook) == "signing_keys_unavailable"
    sender.answers.set()
    assert await first == "accepted"


async def test_keys_are_renewed_beside_and_are_not_good_for_ever(house: House, clock: Clock) -> None:
    sender = Sender(set_of("k1"))
    hook = await webhook(house, sender)
    assert await code(house, hook) == "accepted"
    sender.status = 500
    clock.now += RENEWED_AFTER + 1
    assert await code(house, hook) == "accepted"
    assert len(sender.asked) == 2
    clock.now += KEPT_FOR
    assert await code(house, hook) == "signing_keys_unavailable"


async def test_what_is_renewed_follows_no_redirect_and_reaches_no_private_address() -> None:
    def answer(received: Received) -> Reply:
        return Reply(302, {"Location": f"{server.url}/other"}) if received.target == "/certs" else Reply(200)

    async with stand_in(answer) as server:
        for allowed, why in ((["127.0.0.0/8"], "redirects are not followed"), ([], "127.0.0.1")):
            outside = Outside(Allowlist.parse(allowed), "https://hooks.example.com", None)
            with pytest.raises(FetchTrouble) as trouble:
                await outside.fetch_keys(f"{server.url}/certs", headers={}, timeout=5.0, max_bytes=1000)
            await outside.aclose()
            assert why in trouble.value.detail
        assert [one.target for one in server.received] == ["/certs"]


async def test_the_tester_is_given_the_keys_and_the_time(house: House) -> None:
    """Without a network: a call of long ago can be tried."""
    call = {"headers": list(token(house).items()), "body": BODY.decode()}
    how = {"method": "hmac", "provider": "custom", "secret": "me", "scheme": SCHEME}

    async def tried(**asked: Any) -> str:
        request = validated(SignatureTest, {"authentication": how, "call": call, **asked})
        found = await signatures.test(house.gateway, OWNER, request)
        return found.code or "verified"

    keys = {KEYS: set_of("k1").decode()}
    assert await tried(fetched=keys) == "verified"
    assert await tried(fetched=keys, at=house.gateway.clock() + 700) == "timestamp_expired"
    assert await tried(fetched={KEYS: set_of("k2").decode()}) == "signature_mismatch"
    assert await tried() == "signing_keys_unavailable"


# --- certificates that calls name ------------------------------------------------------------------------------------

FILES = Path(__file__).parents[2] / "vectors"
VECTORS = {one["kind"]: one for one in json.loads((FILES / "sns.json").read_text())["vectors"]}
GENUINE = VECTORS["valid"]
((AT, CERTIFICATE), *_) = GENUINE["fetched"].items()


async def topic(house: House, sender: Sender) -> Any:
    house.gateway.runtime.key_sets.fetch = sender
    house.gateway.clock = lambda: GENUINE["at"]
    how = {"method": "hmac", "provider": "sns", "secret": GENUINE["secret"]}
    return await house.webhook(authentication=how)


async def said(
    house: House, hook: Any, *changes: tuple[bytes, bytes], of: Any = GENUINE, peer: str = "127.0.0.1"
) -> str:
    body = b64decode(of["call"]["body_base64"])
    for before, after in changes:
        body = body.replace(before, after)
    reply = await house.call(hook, body, headers={"content-type": "text/plain; charset=UTF-8"}, peer=peer)
    return "accepted" if reply.status == 200 else reply.json["code"]


async def test_a_certificate_is_fetched_once_from_where_its_sender_has_it(house: House, clock: Clock) -> None:
    sender = Sender(CERTIFICATE.encode())
    hook = await topic(house, sender)
    assert [await said(house, hook) for _ in range(2)] == ["accepted"] * 2
    assert await said(house, hook, of=VECTORS["other_address"]) == "signature_mismatch"
    assert sender.asked == [AT]


async def test_no_other_address_is_asked(house: House, clock: Clock) -> None:
    sender = Sender(CERTIFICATE.encode())
    hook = await topic(house, sender)
    for address in (
        "http://sns.eu-central-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.eu-central-1.amazonaws.com:8443/SimpleNotificationService-1.pem",
        "https://sns.eu-central-1.amazonaws.com@127.0.0.1/SimpleNotificationService-1.pem",
        "https://127.0.0.1/SimpleNotificationService-1.pem",
        "https://sns.s3.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com.else.example/SimpleNotificationService-1.pem",
        "https://else.example/sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com/../SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem#.pem",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem\\n",
        "file:///etc/passwd",
        "",
    ):
        assert await said(house, hook, (AT.encode(), address.encode())) == "signature_mismatch", address
    assert sender.asked == []


def made_up(number: int, host: str = "eu-west-9") -> tuple[bytes, bytes]:
    address = AT.replace("eu-central-1", host).replace("-1.pem", f"-{number}00.pem")
    return AT.encode(), address.encode()


STRANGER, AMAZON = "203.0.113.9", "198.51.100.7"


async def test_a_stranger_s_addresses_take_no_other_network_s_share(house: House, clock: Clock) -> None:
    sender = Sender(CERTIFICATE.encode(), status=404)
    hook = await topic(house, sender)
    other = await topic(house, sender)
    for number in range(MOST_NAMED + 3):
        for to in (hook, other):
            code = await said(house, to, made_up(number), peer=f"203.0.113.{number}")
            assert code == "signing_keys_unavailable"
    assert len(sender.asked) == MOST_NAMED
    sender.status = 200
    assert await said(house, hook, peer=AMAZON) == "accepted"
    sender.status = 404  # now its host is known, and has a share of its own
    assert await said(house, hook, made_up(1, "eu-central-1"), peer=STRANGER) == "signing_keys_unavailable"
    assert len(sender.asked) == MOST_NAMED + 2
    sender.status = 200
    clock.now += RENEWED_AFTER + 1  # what is at hand is renewed all the same
    assert await said(house, hook, peer=STRANGER) == "accepted"
    assert sender.asked[-1] == AT


async def test_all_networks_together_have_an_end_and_leave_a_known_host_its_share(
    house: House, clock: Clock
) -> None:
    sender = Sender(CERTIFICATE.encode())
    hook = await topic(house, sender)
    assert await said(house, hook, peer=AMAZON) == "accepted"
    sender.body = b"none of a genuine call"  # an address that is there makes no host known
    for number in range(MOST_OF_ALL + 20):
        await said(house, hook, made_up(number), peer=f"203.0.{number}.9")
    assert len(sender.asked) == MOST_OF_ALL  # with the first
    rotated = VECTORS["rotated"]
    sender.body = list(rotated["fetched"].values())[2].encode()
    assert await said(house, hook, of=rotated, peer=AMAZON) == "accepted"


async def test_keys_that_proved_a_call_are_there_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While strangers name addresses of their own, and the sender's host is away."""
    async with a_house(tmp_path) as house:
        sender = Sender(CERTIFICATE.encode())
        hook = await topic(house, sender)
        assert await said(house, hook, made_up(1)) == "accepted", "the stand-in has it at every address"
        sender.body = b"no certificate"
        assert await said(house, hook, made_up(2)) == "signature_mismatch"
        await house.gateway.runtime.finish(5)
        kept = await house.gateway.store.sender_keys.all()
        assert [(at, text) for at, text, _ in kept] == [(made_up(1)[1].decode(), CERTIFICATE.encode())]
        sender.body = CERTIFICATE.encode()
        assert await said(house, hook) == "accepted"
        await house.gateway.runtime.finish(5)
        keep = house.gateway.store.sender_keys.keep  # by the clock of the machine, which the next start has
        await keep(AT, CERTIFICATE.encode(), time.time(), 10 * 365 * KEPT_FOR)
    async with a_house(tmp_path) as house:
        house.gateway.clock = lambda: GENUINE["at"]
        house.gateway.runtime.key_sets.fetch = sender = Sender(status=502)
        for number in range(MOST_NAMED * 2):
            assert await said(house, hook, made_up(number + 3)) == "signing_keys_unavailable"
        assert await said(house, hook) == "accepted"
        assert AT not in sender.asked


async def test_kept_keys_are_renewed_and_end_like_others(house: House) -> None:
    now = GENUINE["at"]
    house.gateway.clock = lambda: now
    keep = house.gateway.store.sender_keys.keep
    await keep("https://old.example/", b"1", now - KEPT_FOR - 1, KEPT_FOR)
    await keep("https://a.example/", b"1", now - 60, KEPT_FOR)
    await keep("https://a.example/", b"2", now - 5, KEPT_FOR)
    await keep("https://later.example/", b"3", now + 60, KEPT_FOR)
    assert await house.gateway.store.sender_keys.all() == [
        ("https://a.example/", b"2", now - 5),
        ("https://later.example/", b"3", now + 60),
    ]
    clock, sender = Clock(), Sender(b"4")
    sets = KeySets(clock)
    sets.fetch = sender
    written: list[tuple[str, bytes]] = []
    sets.keep = lambda address, text: written.append((address, text))
    sets.take_in("https://a.example/", b"2", RENEWED_AFTER + 1)
    sets.take_in("https://later.example/", b"3", -60.0)
    assert sets.look("https://later.example/")["https://later.example/"] == b"3" and sender.asked == []
    assert sets.look("https://a.example/")["https://a.example/"] == b"2"
    await until(lambda: sets.at_hand["https://a.example/"] == b"4")
    assert written == [("https://a.example/", b"4")]
    clock.now += KEPT_FOR + 1
    assert sets.look("https://later.example/").keys() == {"https://a.example/"}


async def test_the_tester_takes_a_certificate(house: House) -> None:
    body = b64decode(GENUINE["call"]["body_base64"]).decode()
    call = {"headers": [("Content-Type", "text/plain")], "body": body}
    how = {"method": "hmac", "provider": "sns", "secret": GENUINE["secret"]}
    asked = {"authentication": how, "call": call, "at": GENUINE["at"], "fetched": {"": CERTIFICATE}}
    assert (await signatures.test(house.gateway, OWNER, validated(SignatureTest, asked))).verified
    how["secret"] += "-other"
    found = await signatures.test(house.gateway, OWNER, validated(SignatureTest, asked))
    assert found.code == "signature_mismatch" and "certificate" in found.explanation


CONFIRM = "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=a&Token=2336"


async def test_a_subscription_is_confirmed_when_its_owner_says_so(house: House, clock: Clock) -> None:
    sender = Sender(CERTIFICATE.encode())
    hook = await topic(house, sender)
    asked = Sender(b"<ConfirmSubscriptionResponse/>")
    house.gateway.outbound.fetch = asked
    reply = await house.call(hook, confirmation(), headers={"content-type": "text/plain"})
    assert reply.status == 200 and asked.asked == []
    assert (await house.history(webhook_id=hook.id))[0].status == "handshake"
    unsigned = await house.call(hook, b'{"Type":"SubscriptionConfirmation"}')
    [rejected, handshake] = await house.history(webhook_id=hook.id)
    assert unsigned.status == 401
    with pytest.raises(Refused, match="no subscription"):
        await subscriptions.confirm(house.gateway, OWNER, rejected.id)
    asked.status = 404
    with pytest.raises(Refused, match="answered 404"):
        await subscriptions.confirm(house.gateway, OWNER, handshake.id)
    asked.status = 200
    done = await subscriptions.confirm(house.gateway, OWNER, handshake.id)
    assert (done.topic, asked.asked) == (GENUINE["secret"], [CONFIRM] * 2)


def confirmation() -> bytes:
    return signed_by_amazon(
        Message="You have chosen to subscribe",
        SubscribeURL=CONFIRM,
        Token="2336",
        Type="SubscriptionConfirmation",
    )


def signed_by_amazon(sent_as: Any = None, **changes: str) -> bytes:
    """A message as Amazon signs it: its certificate is that of the vectors' first key. ``sent_as``: fields that are changed
    when it is signed, or the whole body with the signature in the place of SIGNATURE."""
    said = {
        "Message": "paid",
        "MessageId": "165545c9",
        "Timestamp": "2023-11-14T22:13:20.000Z",
        "TopicArn": GENUINE["secret"],
        "Type": "Notification",
    } | changes
    content = "".join(f"{name}\n{said[name]}\n" for name in sorted(said)).encode()
    key: Any = load_pem_private_key((FILES / "make/keys/rsa-1.pem").read_bytes(), None)
    signature = b64encode(key.sign(content, padding.PKCS1v15(), SHA256())).decode()
    if isinstance(sent_as, str):
        return sent_as.replace("SIGNATURE", signature).encode()
    return json.dumps(said | (sent_as or {}) | {"Signature": signature, "SigningCertURL": AT}).encode()


TIME, HIS_TOPIC = "2023-11-14T22:13:21.000Z", "arn:aws:sns:us-east-1:666666666666:his"
FORGED = {"Message": "EVIL", "MessageId": "forged-1", "Timestamp": TIME, "TopicArn": GENUINE["secret"]}
LINES = "".join(f"{name}\n{value}\n" for name, value in FORGED.items())
"""He publishes to his own topic what another message would be signed as, and Amazon signs it with its own lines behind."""
SWALLOWING = f"Notification\nMessageId\n165545c9\nTimestamp\n2023-11-14T22:13:20.000Z\nTopicArn\n{HIS_TOPIC}\nType\nNotification"
HIS = {"Message": LINES.removeprefix("Message\n") + "Type\nNotification", "TopicArn": HIS_TOPIC}


def twice(first: Any, second: Any) -> str:
    fields = FORGED | {"Signature": "SIGNATURE", "SigningCertURL": AT}
    return f'{json.dumps(fields)[:-1]}, "Type": {json.dumps(first)}, "Type": {json.dumps(second)}}}'


async def test_nobody_has_amazon_sign_a_message_of_another_topic(house: House, clock: Clock) -> None:
    sender = Sender(CERTIFICATE.encode())
    hook = await topic(house, sender)
    for sent_as in (
        FORGED | {"Type": SWALLOWING},
        FORGED | {"Type": SWALLOWING.replace("\n", "\r\n")},
        FORGED | {"Type": [SWALLOWING]},
        FORGED | {"Type": {"Notification": SWALLOWING}},
        FORGED | {"Type": SWALLOWING, "Subject": None},
        {"TopicArn": GENUINE["secret"]},
        {"TopicArn": f"{HIS_TOPIC}\nType\nNotification\n"},
        twice("Notification", SWALLOWING),
        twice(SWALLOWING, "Notification"),
        twice("Notification", SWALLOWING).replace('"Type"', '"\\u0054ype"'),
        twice(None, SWALLOWING),
    ):
        body = signed_by_amazon(sent_as, **HIS)
        reply = await house.call(hook, body, headers={"content-type": "text/plain"})
        assert reply.status == 401, sent_as
    assert sender.asked in ([AT], [])


async def test_only_the_message_has_lines(house: House, clock: Clock) -> None:
    hook = await topic(house, Sender(CERTIFICATE.encode()))
    signed: tuple[tuple[dict[str, str], int], ...] = (
        ({"Message": "of\n\nseveral\r\nlines\n", "Subject": "paid"}, 200),
        ({"Message": "{secret}"}, 200),
        ({"Message": LINES}, 200),  # it is what the owner of the right topic wrote
        ({"Subject": "of\nseveral lines"}, 401),
        ({"MessageId": "165545c9\n"}, 401),
        ({"Type": "Else"}, 401),
    )
    for changes, status in signed:
        body = signed_by_amazon(**changes)
        assert (await house.call(hook, body, headers={"content-type": "text/plain"})).status == status
