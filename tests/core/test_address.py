import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.address import (
    NOBODY,
    UNIX,
    Allowlist,
    ClientAddresses,
    forbidden,
    inside,
    limit_key,
    names_another,
    networks_of,
    reach_of,
    read_address,
)
from postern.core.problems import FieldsRefused

# fmt: off
FORBIDDEN = [
    "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254", "169.254.1.1",
    "168.63.129.16", "172.31.255.255", "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1",
    "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1",
    "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "2001:0:7f00:1::", "2001:0:808:808::80ff:fffe", "3fff::1",
    "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "localhost", "2130706433", "0x7f.1", "127.1",
]
PUBLIC = [
    "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
    "2002:808:808::", "2001:4860:4860::8888", "2001:0:808:808::f7f7:f7f7",
]
# fmt: on

UNKNOWN = '"unknown"'
PROXIES = Allowlist.parse(["10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.0/24", "203.0.113.255"),
        ("0.0.0.0/0", "8.8.8.8"),
        ("2001:db8::/32", "2001:DB8:0::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.0/120", "203.0.113.9"),
        ("203.0.113.0/24", "::ffff:203.0.113.9"),
        ("fe80::/10", "fe80::1%eth0"),
        (" 203.0.113.7 ", "203.0.113.7"),
        ("unix", UNIX),
    ],
)
def test_an_address_in_a_range_is_allowed(entry: str, address: str) -> None:
    assert Allowlist.parse([entry]).allows(address)


@pytest.mark.parametrize(
    "address",
    ["203.0.114.0", "203.0.112.255", "2001:db8::1", "", "no-ip", "203.0.113.7:80", "0xcb007107", "203.0.113.07",
     '"203.0.113.7"', "1" * 99, "unix"],
)  # fmt: skip
def test_everything_else_is_refused(address: str) -> None:
    assert not Allowlist.parse(["203.0.113.0/24"]).allows(address)


def test_an_empty_list_allows_nobody_and_every_ipv6_range_nobody_of_ipv4() -> None:
    assert not NOBODY
    assert not NOBODY.allows("127.0.0.1")
    assert not NOBODY.allows(UNIX)
    assert not Allowlist.parse(["::/0"]).allows("1.2.3.4")


def test_neighbouring_and_nested_ranges_are_merged_without_loss() -> None:
    allowlist = Allowlist.parse(["10.0.0.0/25", "10.0.0.128/25", "10.0.0.64/26", "10.0.2.0/24"])
    assert [allowlist.allows(f"10.0.{n}.200") for n in range(4)] == [True, False, True, False]


def test_each_wrong_entry_is_named_with_what_to_write_instead() -> None:
    entries = ["203.0.113.0/24", "shop.example", "10.0.0.1/8", "10.0.0.0/255.0.0.0"]
    with pytest.raises(FieldsRefused) as caught:
        Allowlist.parse([*entries, "fe80::1%eth0", "10.0.0.0/33", ""])
    assert [*caught.value.errors] == ["1", "2", "3", "4", "5", "6"]
    assert "write 10.0.0.0/8" in caught.value.errors["2"]
    assert "write 10.0.0.0/8" in caught.value.errors["3"]


def client_address(
    peer: str | None, forwarded: list[bytes], trusted: Allowlist, header: bytes = b"x-forwarded-for"
) -> str:
    return ClientAddresses(trusted, header.decode()).client(peer, [(header, value) for value in forwarded])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("203.0.113.7", [b"1.1.1.1"], "203.0.113.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [b"1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", [b"6.6.6.6, 1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", [b"6.6.6.6, 1.1.1.1, 10.9.9.9,fd00::1"], "1.1.1.1"),
        ("10.0.0.1", [b"6.6.6.6", b"1.1.1.1", b"10.9.9.9"], "1.1.1.1"),
        ("10.0.0.1", [b"10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("::ffff:10.0.0.1", [b"::ffff:1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", [b"1.1.1.1:5123"], "1.1.1.1"),
        ("10.0.0.1", [b"[2001:DB8::1]:443"], "2001:db8::1"),
        ("10.0.0.1", [b"[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", [b"2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", [b"1.1.1.1, not-an-ip"], '"not-an-ip"'),
        ("10.0.0.1", [b"1.1.1.1, unix"], '"unix"'),
        ("10.0.0.1", [b", 1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", [b"1.1.1.1, "], UNKNOWN),
        ("10.0.0.1", [b"1.1.1.1,"], UNKNOWN),
        ("10.0.0.1", [b"1.1.1.1, , 10.0.0.2"], UNKNOWN),
        ("10.0.0.1", [b"1.1.1.1", b""], UNKNOWN),
        ("10.0.0.1", [b""], UNKNOWN),
        ("10.0.0.1", [b" \t,"], UNKNOWN),
        ("10.0.0.1", [b", 10.0.0.2"], UNKNOWN),
        ("testclient", [b"1.1.1.1"], '"testclient"'),
        ("", [b"1.1.1.1"], UNIX),
        (None, [b"1.1.1.1"], UNIX),
    ],
)
def test_the_client_is_the_rightmost_hop_that_is_no_trusted_proxy(
    peer: str | None, forwarded: list[bytes], client: str
) -> None:
    assert client_address(peer, forwarded, PROXIES) == client


def test_a_proxy_on_the_unix_socket_is_believed_when_it_is_named() -> None:
    assert client_address(None, [b"1.1.1.1"], Allowlist.parse(["unix"])) == "1.1.1.1"


def test_a_hop_cannot_pass_itself_off_as_the_unix_socket() -> None:
    trusted = Allowlist.parse(["unix", "10.0.0.0/8"])
    assert not trusted.allows(client_address("10.0.0.1", [b"unix"], trusted))


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (b"for=1.1.1.1", "1.1.1.1"),
        (b'for=6.6.6.6, For="[2001:db8::1]:4711";proto=https;by=10.0.0.1', "2001:db8::1"),
        (b'proto=https ; for="1.1.1.1:80" , for=10.0.0.2', "1.1.1.1"),
        (b'for="1.1.1\\.1"', "1.1.1.1"),
        (b"for=unknown", UNKNOWN),
        (b"for=_hidden", '"_hidden"'),
        (b"for=6.6.6.6, proto=https", UNKNOWN),
        (b"", UNKNOWN),
        (b'for=""', UNKNOWN),
    ],
)
def test_the_forwarded_header_is_read(value: bytes, client: str) -> None:
    assert client_address("10.0.0.1", [value], PROXIES, b"forwarded") == client


@pytest.mark.parametrize(
    "value", [b"for=1.1.1.1,", b"for=1.1.1.1, ", b"for=1.1.1.1;", b"for=1.1.1.1; ", b"for=1.1.1.1,,", b","]
)
def test_an_element_that_the_proxy_left_empty_names_nobody(value: bytes) -> None:
    assert client_address("10.0.0.1", [value], PROXIES, b"forwarded").startswith('"')


@pytest.mark.parametrize(
    "sent", [b'for=6.6.6.6, for="', b"for=6.6.6.6;for=7.7.7.7", b"for=6.6.6.6, =;", b'for=6.6.6.6, for="x']
)
@pytest.mark.parametrize("appended", [b", for=10.0.0.2", b', for="10.0.0.2:80"'])
def test_a_broken_forwarded_header_hides_nobody(sent: bytes, appended: bytes) -> None:
    client = client_address("10.0.0.1", [sent + appended], PROXIES, b"forwarded")
    assert client.startswith('"')


def test_a_header_for_one_address_that_is_empty_names_nobody() -> None:
    assert client_address("10.0.0.1", [b""], PROXIES, b"cf-connecting-ip") == UNKNOWN
    assert client_address("10.0.0.1", [], PROXIES, b"cf-connecting-ip") == "10.0.0.1"


def test_a_list_where_one_address_belongs_is_no_address() -> None:
    assert client_address("10.0.0.1", [b"1.1.1.1, 2.2.2.2"], PROXIES, b"cf-connecting-ip").startswith('"')


@given(st.text(), st.lists(st.binary()), st.sampled_from([b"x-forwarded-for", b"forwarded", b"x-real-ip"]))
def test_whatever_is_sent_gives_a_short_printable_answer(
    peer: str, forwarded: list[bytes], header: bytes
) -> None:
    client = client_address(peer, forwarded, Allowlist.parse(["0.0.0.0/0", "::/0", "unix"]), header)
    assert client.isprintable()
    assert len(client) <= 66


def test_the_gateway_connects_to_public_addresses_alone_and_says_why_not_to_others_in_words() -> None:
    assert [address for address in FORBIDDEN if not forbidden(address)] == []
    assert [address for address in PUBLIC if forbidden(address)] == []
    assert forbidden("169.254.169.254") == "a cloud's metadata service"
    assert forbidden("2002:a9fe:a9fe::") == "a cloud's metadata service"
    assert forbidden("64:ff9b::10.0.0.1") == "a private network"


@pytest.mark.parametrize(
    ("url", "who"),
    [
        ("http://127.0.0.1:8080", "this machine"),
        ("http://localhost:8080", "this machine"),
        ("http://[::1]:8080", "this machine"),
        ("http://0.0.0.0:8080", "this machine"),
        ("http://192.168.1.20:8080", "this network"),
        ("https://10.1.2.3/hooks", "this network"),
        ("http://[fd00::1]", "this network"),
        ("https://hooks.example.com", None),
        ("https://8.8.8.8", None),
        ("https://203.0.113.7", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_who_alone_can_reach_a_url(url: str, who: str | None) -> None:
    assert reach_of(url) == who


@pytest.mark.parametrize(
    ("address", "key", "around"),
    [
        ("203.0.113.7", "203.0.113.7", ("203.0.0.0/16", "203.0.113.0/24")),
        ("2001:db8:1:2:f003:4:5:6", "2001:db8:1:2::/64", ("2001:db8::/32", "2001:db8:1::/48")),
        ("2001:db8:1:2::", "2001:db8:1:2::/64", ("2001:db8::/32", "2001:db8:1::/48")),
        ("2001:db8:1:3::", "2001:db8:1:3::/64", ("2001:db8::/32", "2001:db8:1::/48")),
        ("::ffff:203.0.113.7", "203.0.113.7", ("203.0.0.0/16", "203.0.113.0/24")),
        (UNIX, UNIX, (UNIX,)),
        ('"a:b"', '"a:b"', ('"a:b"',)),
    ],
)
def test_a_caller_is_an_ipv4_address_or_a_64_of_ipv6_and_has_two_networks(
    address: str, key: str, around: tuple[str, ...]
) -> None:
    assert (limit_key(address), networks_of(address)) == (key, around)


def test_a_proxy_that_is_not_listed_is_known_by_naming_somebody_else() -> None:
    header = b"x-forwarded-for"
    assert names_another("172.17.0.1", [b"203.0.113.7"], header)
    assert not names_another("203.0.113.7", [b"198.51.100.1, 203.0.113.7"], header)
    assert not names_another("172.17.0.1", [], header)


def test_a_zone_is_no_part_of_an_address_and_belongs_to_ipv6_alone() -> None:
    assert read_address("fe80::1%eth0") == read_address("fe80::1") is not None
    assert read_address("192.0.2.1%eth0") is None
    assert read_address("::ffff:192.0.2.1") == read_address("192.0.2.1")
    assert read_address("1" * 65) is None


def test_a_proxy_in_front_is_mostly_inside() -> None:
    for address in ("127.0.0.1", "10.1.2.3", "100.64.0.1", "169.254.1.1", UNIX):
        assert inside(address) is True
    for address in ("8.8.8.8", "192.0.2.1", "", "no address"):
        assert inside(address) is False


def test_the_proxies_name_the_client_in_their_one_header_and_nobody_else_does() -> None:
    whom = ClientAddresses(PROXIES, "X-Real-IP")
    sent = [(b"x-forwarded-for", b"198.51.100.1"), (b"x-real-ip", b"198.51.100.2"), (b"host", b"a")]
    assert whom.client("10.0.0.1", sent) == "198.51.100.2"
    assert whom.client("203.0.113.9", sent) == "203.0.113.9"
    nobody = ClientAddresses(NOBODY, "X-Real-IP")
    assert nobody.client("203.0.113.9", sent) == "203.0.113.9"
    assert nobody.client("::ffff:203.0.113.9", sent) == "203.0.113.9"
    assert nobody.client(None, sent) == UNIX
