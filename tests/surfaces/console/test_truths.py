"""What the console says is so, even where it would be easier to say something else."""

from playwright.sync_api import expect

from surfaces.console.conftest import Console


def test_a_call_through_an_unlisted_proxy_says_what_to_set(console: Console) -> None:
    webhook = console.webhook(name="Proxied")
    call = console.call(webhook["url"], {}, X_Forwarded_For="203.0.113.7")[1]["invocationId"]
    console.open(f"/history/{call}")
    expect(console.page.get_by_text("POSTERN_TRUSTED_PROXIES=127.0.0.1")).to_be_visible()
    direct = console.call(webhook["url"], {})[1]["invocationId"]
    console.open(f"/history/{direct}")
    expect(console.page.get_by_text("POSTERN_TRUSTED_PROXIES")).to_have_count(0)
