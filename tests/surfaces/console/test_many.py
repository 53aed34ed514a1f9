"""Very many webhooks in a real browser: found, put in order, chosen, and the same done with many of them."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from surfaces.console.conftest import Console, Outside, Plain
from surfaces.console.plain import words

OF_A_PAGE = 30


def many(outside: Outside, name: str, count: int, **settings: object) -> list[str]:
    return [outside.webhook(name=f"{name} {number}", **settings)["id"] for number in range(count)]


def names(console: Console) -> list[str]:
    return console.page.locator(".webhooks .name-cell > a").all_inner_texts()


def test_the_list_is_filtered_in_the_address_and_says_how_to_get_out(console: Console) -> None:
    many(console, "Filtered", 2, folder="Found here/Inside", tags=["blue"])
    console.webhook(name="Filtered away", tags=["red"])
    console.open("/webhooks?search=Filtered")
    console.page.get_by_label("Tag", exact=True).fill("blue")
    expect(console.page.get_by_text("2 webhooks")).to_be_visible()
    assert parse_qs(urlsplit(console.page.url).query)["tag"] == ["blue"]
    console.page.reload()
    assert names(console) == ["Filtered 1", "Filtered 0"]
    console.page.get_by_label("State").select_option("disabled")
    expect(console.page.get_by_role("heading", name="No webhook matches")).to_be_visible()
    console.click("Take away: state disabled", "link")
    expect(console.page.get_by_text("2 webhooks")).to_be_visible()
    console.page.get_by_role("link", name="Folder Found here/Inside").first.click()
    expect(console.page.get_by_label("Folder", exact=True)).to_have_value("Found here/Inside")


def test_pages_follow_each_other_in_the_order_that_was_chosen(plain: Plain) -> None:
    many(plain, "Paged", OF_A_PAGE + 2, tags=["paged"])

    def named() -> list[str]:
        return [words(one) for one in plain.root.iterfind(".//td[@class='name-cell']/a")]

    plain.open("/webhooks?tag=paged")
    plain.follow("Name")
    assert words(plain.root.find(".//th[@aria-sort='ascending']")) == "Name"  # type: ignore[arg-type]
    first = named()
    assert "31 to 32 of 32 webhooks" in plain.follow("Next")
    rest = named()
    assert (len(first), len(rest)) == (OF_A_PAGE, 2)
    assert [*first, *rest] == [f"Paged {number}" for number in range(OF_A_PAGE + 2)]
    plain.follow("Name")
    assert words(plain.root.find(".//th[@aria-sort='descending']")) == "Name"  # type: ignore[arg-type]
    assert named()[0] == f"Paged {OF_A_PAGE + 1}"


def test_folders_open_and_close_and_count(console: Console) -> None:
    many(console, "Grouped", OF_A_PAGE + 1, folder="Big", tags=["grouped"])
    many(console, "Grouped too", 2, folder="Big/Small", tags=["grouped"])
    console.open("/webhooks?tag=grouped")
    console.page.get_by_label("In folders").check()
    big = console.page.locator("details.folder", has=console.page.get_by_text("Big", exact=True))
    expect(big.get_by_text("31", exact=True)).to_be_visible()
    assert names(console) == []
    big.locator("summary").click()
    expect(big.get_by_role("link", name="All 31 of this folder")).to_be_visible()
    assert len(names(console)) == OF_A_PAGE
    assert console.violations() == []
    big.locator("summary").click()
    expect(big.get_by_role("link", name="All 31 of this folder")).to_be_hidden()
    console.open("/webhooks?tag=grouped&folder=Big/Small&group=folder")
    expect(console.page.get_by_role("link", name="Grouped too 1", exact=True)).to_be_visible()


def test_many_are_tagged_from_the_page_and_moved_from_the_filter(console: Console) -> None:
    many(console, "Taken", 3)
    console.open("/webhooks?search=Taken")
    expect(console.page.get_by_role("button", name="Add tags…")).to_be_hidden()
    console.page.get_by_label("Choose every webhook on this page").check()
    expect(console.page.get_by_text("3 chosen")).to_be_visible()
    console.page.get_by_label("Choose Taken 1").uncheck()
    console.click("Add tags…")
    dialog = console.page.get_by_role("dialog", name="Add tags to 2 webhooks?")
    dialog.get_by_label("Tags").fill("first, second")
    assert console.violations() == []
    dialog.get_by_role("button", name="Add tags: 2 webhooks").click()
    expect(console.page.get_by_text("Tagged 2 webhooks.")).to_be_visible()
    assert console.violations() == []
    console.click("Back to the list", "link")
    assert urlsplit(console.page.url).query.startswith("search=Taken")

    console.open("/webhooks?tag=second&search=Taken&sort=name")
    assert names(console) == ["Taken 0", "Taken 2"]
    console.open("/webhooks?search=Taken&group=folder")
    console.page.get_by_label("All 3 that match").check()
    console.click("Move to a folder…")
    dialog = console.page.get_by_role("dialog", name="Move 3 webhooks to a folder?")
    dialog.get_by_label("Folder").fill("a//b")
    dialog.get_by_role("button", name="Move to a folder: 3 webhooks").click()
    expect(console.page.get_by_text("A folder is a name")).to_be_visible()
    assert console.violations() == []
    console.page.get_by_label("Folder").fill("Taken/There")
    console.click("Move to a folder: 3 webhooks")
    expect(console.page.get_by_text("Moved 3 webhooks.")).to_be_visible()
    found = console.api.get("webhooks?folder=taken/there").json
    assert (found["total"], len(found["items"])) == (3, 3)


def test_many_are_deleted_and_only_what_applies_is_offered(console: Console) -> None:
    many(console, "Doomed", 2)
    console.open("/webhooks?search=Doomed")
    console.page.get_by_label("Choose every webhook on this page").check()
    for deed in ("Enable…", "Release…", "Take tags away…"):
        expect(console.page.get_by_role("button", name=deed)).to_be_hidden()
    console.click("Delete…", "button")
    dialog = console.page.get_by_role("dialog", name="Delete 2 webhooks?")
    expect(dialog.get_by_text("From now on whoever calls hears 404.")).to_be_visible()
    assert console.violations() == []
    assert console.api.get("webhooks?search=Doomed").json["total"] == 2
    console.click("Delete: 2 webhooks")
    expect(console.page.get_by_text("Deleted 2 webhooks")).to_be_visible()
    assert console.api.get("webhooks?search=Doomed").json["total"] == 0
    console.click("Open the bin", "link")
    expect(console.page.get_by_role("button", name="Restore Doomed 0")).to_be_visible()


def test_another_number_than_was_agreed_to_is_asked_again(console: Console) -> None:
    many(console, "Counted", 2)
    console.open("/webhooks?search=Counted&group=folder")
    console.page.get_by_label("All 2 that match").check()
    console.click("Hold…")
    dialog = console.page.get_by_role("dialog", name="Hold 2 webhooks?")
    expect(dialog).to_be_visible()
    console.webhook(name="Counted as well")
    dialog.get_by_role("button", name="Hold: 2 webhooks").click()
    expect(console.page.get_by_text("It is about 3 webhooks now, and 2 were expected")).to_be_visible()
    assert console.api.get("webhooks?search=Counted&state=held").json["total"] == 0
    console.click("Hold: 3 webhooks")
    expect(console.page.get_by_text("3 webhooks on hold")).to_be_visible()


def test_a_webhook_is_chosen_from_thousands_with_the_keyboard(console: Console) -> None:
    wanted = console.webhook(name="Neighbour sought after")
    many(console, "Neighbour", 20)
    assert console.call(wanted["url"])[0] == 200
    console.open("/volume")
    field = console.page.get_by_role("combobox", name="Webhook")
    options = console.page.locator("#webhook-choices option")
    expect(options).to_have_count(20)
    # The last key alone leaves one: what earlier keys ask for may come as late.
    field.press_sequentially("neighbour s")
    expect(options).to_have_count(1)
    expect(options).to_have_attribute("value", "Neighbour sought after")
    field.fill("Neighbour sought after")
    field.press("Enter")
    console.page.wait_for_url("**webhook=Neighbour+sought+after*")
    expect(console.page.get_by_text("Calls to one webhook")).to_be_visible()
    field.fill("")
    field.press("Tab")
    console.page.wait_for_url(lambda url: "webhook=&" in f"{url}&")


def test_without_a_script_a_name_is_enough(plain: Plain) -> None:
    plain.webhook(name="Typed by hand")
    assert "Calls to one webhook" in plain.open("/volume?webhook=typed%20by%20hand")
    assert plain.field("Webhook").get("value") == "Typed by hand"
    assert "no webhook has this name" in plain.open("/calls?webhook=nobody", status=422)
    plain.open("/calls?q=webhook:%22Typed%20by%20hand%22")
    assert plain.named("Remove webhook: Typed by hand", "a")


def test_folder_and_tags_are_set_on_the_webhook_itself(console: Console) -> None:
    webhook = console.webhook(name="Labelled")
    console.open(f"/webhooks/{webhook['id']}/settings#name-and-tags")
    console.page.get_by_label("Folder").fill("Shops/Europe")
    console.page.get_by_label("Tags").fill("eu, paid, EU")
    name = console.page.get_by_label("Name", exact=True)
    name.press("Enter")
    expect(console.page.locator(".save-bar").get_by_text("Saved. It applies")).to_be_visible()
    expect(name).to_be_focused()
    saved = console.settings_of(webhook)
    assert (saved["folder"], saved["tags"]) == ("Shops/Europe", ["eu", "paid"])
    console.click("Tag paid", "link")
    expect(console.page.get_by_role("link", name="Labelled", exact=True)).to_be_visible()
    console.open(f"/webhooks/{webhook['id']}/settings#name-and-tags")
    console.page.get_by_label("Tags").fill("x" * 50)
    console.click("Save")
    expect(console.page.locator(".wrong")).to_contain_text("A tag is a text of 1 to 40 characters")
