"""Calls and signatures that vendors print in their own documentation and tests."""

from dataclasses import dataclass

from signing import Headers, Message

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foo"
    b"bar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.s"
    b"lack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."
    b"803a0bc887a14d10d2c447fce8b6703c"
)

PADDLE_BODY = (
    b'{"data":{"id":"pri_01hsdn96k2hxjzsq5yerecdj9j","name":null,"status":"active","quantity":{"maximum":999999,"min'
    b'imum":1},"tax_mode":"account_setting","product_id":"pro_01hsdn8qp7yydry3x1yeg6a9rv","unit_price":{"amount":"10'
    b'00","currency_code":"USD"},"custom_data":null,"description":"testing","import_meta":null,"trial_period":null,"'
    b'billing_cycle":{"interval":"month","frequency":1},"unit_price_overrides":[]},"event_id":"evt_01hsdn97563968dy0'
    b'szkmgjwh3","event_type":"price.created","occurred_at":"2024-03-20T10:07:35.590857Z","notification_id":"ntf_01h'
    b'sdn977e920kbgzt6r6c9rqc"}'
)

BOX_BODY = (
    b'{"type":"webhook_event","webhook":{"id":"1234567890"},"trigger":"FILE.UPLOADED","source":{"id":"1234567890","t'
    b'ype":"file","name":"Test.txt"}}'
)

PAGERDUTY_BODY = (
    b'{"event":{"id":"01BWDWL3NYY7LUFPZCC28QUCMK","event_type":"incident.priority_updated","resource_type":"incident'
    b'","occurred_at":"2021-04-26T17:36:27.458Z","agent":{"html_url":"https://acme.pagerduty.com/users/PLH1HKV","id"'
    b':"PLH1HKV","self":"https://api.pagerduty.com/users/PLH1HKV","summary":"Tenex Engineer","type":"user_reference"'
    b'},"client":null,"data":{"id":"PGR0VU2","type":"incident","self":"https://api.pagerduty.com/incidents/PGR0VU2",'
    b'"html_url":"https://acme.pagerduty.com/incidents/PGR0VU2","number":2,"status":"triggered","title":"A little bu'
    b'mp in the road","service":{"html_url":"https://acme.pagerduty.com/services/PF9KMXH","id":"PF9KMXH","self":"htt'
    b'ps://api.pagerduty.com/services/PF9KMXH","summary":"API Service","type":"service_reference"},"assignees":[{"ht'
    b'ml_url":"https://acme.pagerduty.com/users/PTUXL6G","id":"PTUXL6G","self":"https://api.pagerduty.com/users/PTUX'
    b'L6G","summary":"User 123","type":"user_reference"}],"escalation_policy":{"html_url":"https://acme.pagerduty.co'
    b'm/escalation_policies/PUS0KTE","id":"PUS0KTE","self":"https://api.pagerduty.com/escalation_policies/PUS0KTE","'
    b'summary":"Default","type":"escalation_policy_reference"},"teams":[{"html_url":"https://acme.pagerduty.com/team'
    b's/PFCVPS0","id":"PFCVPS0","self":"https://api.pagerduty.com/teams/PFCVPS0","summary":"Engineering","type":"tea'
    b'm_reference"}],"priority":{"html_url":"https://acme.pagerduty.com/account/incident_priorities","id":"PSO75BM",'
    b'"self":"https://api.pagerduty.com/priorities/PSO75BM","summary":"P1","type":"priority_reference"},"urgency":"h'
    b'igh","conference_bridge":{"conference_number":1000,"conference_url":"https://example.com"},"resolve_reason":nu'
    b"ll}}}"
)


@dataclass(frozen=True)
class Published:
    provider: str
    name: str
    source: str
    secret: str
    message: Message
    headers: Headers
    at: float


PUBLISHED = [
    Published(
        "github",
        "GitHub's own example",
        "GitHub documentation, validating webhook deliveries",
        "It's a Secret to Everybody",
        Message(b"Hello, World!"),
        [("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")],
        1_700_000_000,
    ),
    Published(
        "slack",
        "Slack's own example",
        "Slack documentation, verifying requests",
        "8f742231b10e8888abcd99yyyzzz85a5",
        Message(SLACK_BODY),
        [
            ("X-Slack-Request-Timestamp", "1531420618"),
            ("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
        ],
        1_531_420_619,
    ),
    Published(
        "paddle",
        "Paddle's own example",
        "tests of Paddle's Go SDK",
        "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr",
        Message(PADDLE_BODY),
        [
            (
                "Paddle-Signature",
                "ts=1710929255;h1=6c05ef8fa83c44d751be6d259ec955ce5638e2c54095bf128e408e2fce1589c8",
            )
        ],
        1_710_929_256,
    ),
    Published(
        "standardwebhooks",
        "Svix's own example",
        "Svix documentation, verifying webhooks manually",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        Message(b'{"test": 2432232314}'),
        [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ],
        1_614_265_331,
    ),
]

BOX_PRIMARY = "6TfeAW3A1PASkgboxxA5yqHNKOwFyMWuEXny/FPD5hI="
BOX_SECONDARY = "v+1CD1Jdo3muIcbpv5lxxgPglOqMfsNHPV899xWYydo="
PAGERDUTY_SECRET = "lDQHScfUeXUKaQRNF+8XIiDKZ7XX3itBAYzwU0TARw8lJqRnkKl2iB1anSb0Z+IK"
PAGERDUTY_SIGNATURE = "v1=0c0b9495b893a39e70d1fea2fe11fbe0a825f88b9f67846f6cc07dd2bc5476cd"
