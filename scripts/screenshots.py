"""Takes the pictures of the console again, with a day of sample data, into docs/console/: `make screenshots`.

With names, like `python scripts/screenshots.py webhooks live`, only those.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from chromium import find_chromium
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.waiting import free_port, wait_until  # noqa: E402

PICTURES = ROOT / "docs" / "console"
PASSWORD = "a password for the pictures"

# What each picture is called, what it shows, and what is clicked first. {shop}, {tool}, {rejected} and
# the like are filled in.
PAGES: list[tuple[str, str, list[str]]] = [
    ("webhooks", "/webhooks", []),
    ("new", "/webhooks/new", []),
    ("new-sender", "/webhooks/new/signed", []),
    ("new-signed", "/webhooks/new/signed?provider=stripe", []),
    ("new-tool", "/webhooks/new/tool", []),
    ("new-browser", "/webhooks/new/browser", []),
    ("new-schedule", "/webhooks/new/schedule", []),
    ("new-other", "/webhooks/new/other", []),
    ("ready", "/webhooks/{tool}/ready", []),
    ("overview", "/webhooks/{shop}", []),
    ("live", "/webhooks/{shop}/calls?live=1", ["tr:has(.bad) a.opens"]),
    ("webhook-settings", "/webhooks/{shop}/settings", []),
    ("authentication", "/webhooks/{shop}/settings#authentication", []),
    ("custom-scheme", "/webhooks/{shop}/settings?start=stripe#authentication", []),
    ("mapping", "/webhooks/{shop}/settings#mapping", []),
    ("schedule", "/webhooks/{shop}/schedule", []),
    ("alarms", "/webhooks/{shop}/settings#alarms", []),
    ("webhook-calls", "/webhooks/{shop}/calls", []),
    ("rejected", "/webhooks/{shop}/rejected", []),
    ("send-again", "/webhooks/{shop}/send-again?since=2h", []),
    ("delete", "/webhooks/{shop}", ["[popovertarget=more-menu]", "#more-menu .danger"]),
    ("bin", "/bin", []),
    ("find", "/find?find=order", []),
    ("documentation", "/documentation", []),
    ("documentation-page", "/documentation/how-to/duplicates", []),
    ("calls", "/calls", []),
    (
        "replay",
        "/calls?status=failed",
        [".failures button", "#begin .main-action", "h2:has-text('failed again')"],
    ),
    ("replays", "/replays", []),
    ("rejected-call", "/calls/{rejected}", []),
    ("accepted-call", "/calls/{accepted}", []),
    ("failed-calls", "/calls?status=failed", ["tr:nth-of-type(2) a.opens"]),
    ("compare", "/calls/{accepted}/compare?to={other}", []),
    ("edit", "/calls/{accepted}/edit", []),
    ("incidents", "/incidents", []),
    ("incident", "/incidents/{incident}", []),
    ("volume", "/volume", []),
    ("tester", "/tester", []),
    ("workflows", "/workflows", []),
    ("settings", "/settings", []),
    ("users", "/settings/users", []),
    ("sessions", "/settings/sessions", []),
    ("connect", "/settings/connect", []),
    ("environment", "/settings/environment", []),
    ("password", "/settings/password", []),
    ("channels", "/settings/channels", []),
    ("retention", "/settings/retention", []),
    ("engine", "/settings/engine", []),
    ("audit", "/settings/audit", []),
]
DARK = ("webhooks", "overview", "live", "calls", "webhook-settings")
PHONE = ("webhooks", "overview", "calls", "webhook-settings", "rejected-call")


def main() -> None:
    program = find_chromium()
    if program is None:
        sys.exit("No browser: install Debian's chromium, or set CHROMIUM to one.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT, prefix="pictures-") as folder:
        environment = _environment(Path(folder))
        subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "sample_data.py")], cwd=ROOT, env=environment, check=True
        )
        with subprocess.Popen(
            [sys.executable, "-m", "postern", "serve"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        ) as served:
            try:
                base = f"http://127.0.0.1:{environment['POSTERN_PORT']}"
                wait_until(lambda: _is_settled(base), every=0.5)
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(
                        executable_path=program, args=["--no-sandbox", "--headless", "--disable-gpu"]
                    )
                    _take_all(browser, base)
                    browser.close()
            finally:
                served.send_signal(signal.SIGTERM)


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")}
    return inherited | {
        "PYTHONPATH": str(ROOT / "src"),
        "POSTERN_PORT": str(free_port()),
        # As they are seen in a picture.
        "POSTERN_DATA_DIR": str((folder / "data").relative_to(ROOT)),
        "POSTERN_WORKFLOWS": str((folder / "workflows").relative_to(ROOT)),
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_LOG": "off",
    }


def _is_settled(base: str) -> bool:
    """It serves, and the engine has been given what the sample calls left behind."""
    with urlopen(f"{base}/metrics", timeout=2) as answer:
        metrics = answer.read().decode()
    waiting = [line for line in metrics.splitlines() if line.startswith("postern_deliveries_waiting")]
    return bool(waiting) and waiting[0].endswith(" 0.0")


def _take_all(browser: Browser, base: str) -> None:
    looks = {"": (1280, 860, "light"), "-dark": (1280, 860, "dark"), "-phone": (390, 844, "light")}
    for ending, (width, height, scheme) in looks.items():
        context = browser.new_context(
            locale="en-GB",
            timezone_id="UTC",
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(f"{base}/sign-in")
        if not ending:
            page.screenshot(path=PICTURES / "sign-in.png")
        page.get_by_label("Name").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/webhooks")
        known = _known(page, base)
        for name, path, clicks in PAGES:
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            if not ending or (ending == "-dark" and name in DARK) or (ending == "-phone" and name in PHONE):
                page.goto(base + path.format(**known))
                for selector in clicks:
                    page.locator(selector).first.click()
                page.wait_for_timeout(600)  # a stream's first rows, a chart's drawing
                page.screenshot(path=PICTURES / f"{name}{ending}.png")
        context.close()


def _known(page: Page, base: str) -> dict[str, str]:
    def id_behind(path: str, link: str) -> str:
        page.goto(base + path)
        return (page.locator(link).first.get_attribute("href") or "").rpartition("/")[2]

    shop = id_behind("/webhooks", "a:has-text('Shopify orders')")
    return {
        "shop": shop,
        "tool": id_behind("/webhooks", "a:has-text('Example: order look-up')"),
        "incident": id_behind("/incidents", "td a[href^='/incidents/']"),
        "rejected": id_behind("/calls?code=signature_mismatch", "a.opens"),
        "accepted": id_behind(f"/calls?status=completed&webhook={shop}", "a.opens"),
        "other": id_behind(f"/calls?status=completed&webhook={shop}", "tr:nth-of-type(4) a.opens"),
    }


if __name__ == "__main__":
    main()
