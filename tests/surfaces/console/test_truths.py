"""What the console says is so, even where it would be easier to say something else."""

from playwright.sync_api import expect

from surfaces.console.conftest import Console, shopify_signature


def test_a_call_through_an_unlisted_proxy_says_what_to_set(console: Console) -> None:
    webhook = console.webhook(name="Proxied")
    call = console.call(webhook["url"], {}, X_Forwarded_For="203.0.113.7")[1]["invocationId"]
    console.open(f"/history/{call}")
    expect(console.page.get_by_text("POSTERN_TRUSTED_PROXIES=127.0.0.1")).to_be_visible()
    direct = console.call(webhook["url"], {})[1]["invocationId"]
    console.open(f"/history/{direct}")
    expect(console.page.get_by_text("POSTERN_TRUSTED_PROXIES")).to_have_count(0)


def test_what_came_again_is_not_offered_and_what_was_admitted_is_counted(console: Console) -> None:
    webhook = console.webhook(
        name="Came again", authentication={"method": "hmac", "provider": "shopify", "secret": "typo"}
    )
    for body in (b'{"n":1}', b'{"n":2}'):
        assert (
            console.call(webhook["url"], body, X_Shopify_Hmac_Sha256=shopify_signature("right", body))[0]
            == 401
        )
    console.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    body = b'{"n":1}'
    accepted = console.call(webhook["url"], body, X_Shopify_Hmac_Sha256=shopify_signature("right", body))
    console.open(f"/webhooks/{webhook['id']}/refused")
    expect(console.page.get_by_text("1 call came again with the same body")).to_be_visible()
    expect(console.page.get_by_role("link", name=accepted[1]["invocationId"])).to_be_visible()
    console.click("Admit it")
    expect(console.page.get_by_text("1 of 1 call admitted.")).to_be_visible()
    expect(console.page.get_by_text("Nothing is left to admit")).to_be_visible()


def test_what_cannot_be_done_with_a_call_is_said_on_its_page(console: Console) -> None:
    webhook = console.webhook(
        name="Stays", authentication={"method": "hmac", "provider": "shopify", "secret": "typo"}
    )
    call = console.call(webhook["url"], b"{}", X_Shopify_Hmac_Sha256=shopify_signature("right", b"{}"))[1]
    console.open(f"/history/{call['invocationId']}")
    console.click("Check again and admit")
    expect(console.page.locator(".verdict [role=alert]")).to_contain_text("It was not admitted")
    expect(console.page.locator("h1")).to_contain_text("Call")
    expect(console.page.get_by_role("button", name="Check again and admit")).to_be_visible()


def test_a_replay_may_carry_the_recorded_values_where_the_mapping_has_changed(console: Console) -> None:
    webhook = console.webhook(name="Chosen", fieldMapping={"fieldOne": "a"})
    call = console.call(webhook["url"], {"a": "x", "b": "y"})[1]["invocationId"]
    console.open(f"/history/{call}")
    expect(console.page.get_by_role("button", name="Replay", exact=True)).to_be_visible()
    console.api.patch(f"webhooks/{webhook['id']}", {"fieldMapping": {"fieldOne": "b"}})
    console.open(f"/history/{call}")
    expect(console.page.get_by_role("button", name="Replay with today’s mapping")).to_be_visible()
    console.click("Replay as it was recorded")
    expect(console.page.get_by_text("Replayed: the workflow is started again")).to_be_visible()
    deliveries = console.api.get(f"invocations/{call}").json["deliveries"]
    assert [one["fields"]["fieldOne"] for one in deliveries] == ["x", "x"]
