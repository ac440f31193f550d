"""The dashboard in a real Chromium: every page with texts that mean harm, keys, changes, live updates, both themes.

`make test-browser` runs these. They need the Debian packages chromium and chromium-driver. Screenshots of every page,
light and dark, wide and narrow, are left in build/dashboard.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from dashboard_kit import DOWNLOAD, MARK, PROJECT, Served, person_token, project, served
from limpet import wiring
from limpet.doors.dashboard.pages import NAVIGATION
from limpet.doors.dashboard.pages import PAGES as ROUTED_PAGES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars"),
)
ROOT = Path(__file__).resolve().parent.parent.parent
SHOTS = ROOT / "build" / "dashboard"  # `make clean` takes it away
SIZES = {"wide": (1360, 900), "narrow": (400, 860)}
PAGES = {
    "start": "/start",
    "overview": "/overview",
    "sessions": "/sessions",
    "settings": "/settings",
    "note": "/notes?session=port-parser",
    "session": "/session?id=port-parser",
    "window": "/session?id=port-parser&kind=fold",
    "messages": "/messages?session=port-parser&first=1&last=40",
    "notepad": "/notepad?session=port-parser",
    "notes": "/notes",
    "memory": "/memory",
    "remembered": "/remembered?key=build",
    "handoffs": "/handoffs",
    "handoff": "/handoff?line=main",
    "outputs": "/outputs",
    "journal": "/journal",
    "recall": "/recall?q=casts+and+tabs",
    "savings": "/savings",
    "history": "/history",
    "change": "/change?seq=3",
    "docs": "/docs",
    "manual": "/docs?page=memory",
}


class Window:
    """One browser window at a server, and a few words for what people do in it."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def go(self, path: str) -> None:
        self.driver.get(path if path.startswith("http") else self.url + path)
        # On a busy machine the driver has been seen to come back between two documents.
        while not self.driver.execute_script("return document.readyState === 'complete' && document.body !== null"):
            time.sleep(0.05)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def text(self) -> str:
        return self.one("body").text

    def until(self, true: Callable[[], object], what: str) -> None:
        for _ in range(200):
            time.sleep(0.1)
            try:
                if true():
                    return
            except WebDriverException:
                continue  # the page is just being replaced
        raise AssertionError(f"it never came to be that {what}: {self.driver.current_url}\n{self.text()[:600]}")

    def at(self, path: str) -> None:
        self.until(lambda: self.driver.current_url.startswith(self.url + path), f"the page is {path}")

    def complaints(self) -> list[str]:
        """What the browser's console says: refused scripts, errors, and whatever a page writes there."""
        return [str(line["message"]) for line in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def unharmed(self, where: str) -> None:
        ran = self.driver.execute_script(
            "return [window.__ran, document.querySelectorAll('main script, main iframe').length]"
        )
        assert ran == [None, 0], where
        assert not [line for line in self.complaints() if "401" not in line], where

    def sign_in(self, token: str) -> None:
        self.go("/sign-in")
        self.one("#token").send_keys(token)
        self.one("form button").click()
        self.at("/overview")


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def driver() -> Iterator[webdriver.Chrome]:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.fail("These tests need Chromium: apt-get install chromium chromium-driver")
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("browser")
    with served(project(folder, means_harm=False), folder) as found:
        yield found


@pytest.fixture
def window(driver: webdriver.Chrome, site: Served) -> Window:
    driver.delete_all_cookies()
    driver.set_window_size(*SIZES["wide"])
    found = Window(driver, site.url)
    found.sign_in(person_token(site.store).secret)
    found.complaints()
    return found


def test_every_page_with_texts_that_mean_harm(driver: webdriver.Chrome, tmp_path: Path) -> None:
    """Clicks through every page and link kind of a project in which every text is an attack."""
    with served(project(tmp_path, means_harm=True), tmp_path) as site:
        driver.delete_all_cookies()
        window = Window(driver, site.url)
        window.go(site.dashboard)
        window.at("/overview")
        window.complaints()
        waiting, seen = ["/overview", "/recall?q=script+alert+onerror", "/overview?archived=no"], set()
        kinds: dict[str, int] = {}
        while waiting:
            path = waiting.pop(0)
            kind = path.partition("?")[0]
            if path in seen or kinds.get(kind, 0) >= 3:
                continue
            kinds[kind] = kinds.get(kind, 0) + 1
            seen.add(path)
            window.go(path)
            driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
            window.unharmed(path)
            hrefs = driver.execute_script("return [...document.querySelectorAll('main a, nav a')].map(a => a.href)")
            assert all(href.startswith(site.url) for href in hrefs), path
            waiting += [href.removeprefix(site.url) for href in hrefs if "#" not in href and DOWNLOAD not in href]
        assert {kind for kind in kinds if kind != "/"} == {f"/{name}" for name in ROUTED_PAGES}, kinds
        window.go("/overview")
        assert MARK[:30] in window.text()


def test_keys(window: Window) -> None:
    window.press("?")
    window.until(lambda: window.one("#help").is_displayed(), "help is shown")
    window.press(Keys.ESCAPE)
    window.until(lambda: not window.one("#help").is_displayed(), "help is gone")
    for path, key in ((f"/{page.name}", page.letter) for page in NAVIGATION):
        window.press("g", key)
        window.at(path)
        if path == "/recall":  # its field is ready to be typed into
            window.press(Keys.ESCAPE)
    before = window.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    window.press("t")
    after = window.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert before != after
    window.go("/notes")
    assert window.driver.execute_script("return getComputedStyle(document.body).backgroundColor") == after  # it lasts
    window.press("t")
    window.press("j", "j", "k")
    assert len(window.all(".marked-item")) == 1
    window.press(Keys.ENTER)
    window.at("/note?")
    window.press("/")
    assert window.driver.switch_to.active_element.get_attribute("id") == "search"
    window.press("casts", Keys.ENTER)
    window.at("/recall?q=casts")
    assert window.all("mark")
    window.unharmed("keys")


def test_a_person_edits_pins_restores_and_undoes(window: Window) -> None:
    window.go("/notes")
    window.one("#new").send_keys("Seen in a browser.")
    window.one("#new-tags").send_keys("browser")
    window.one("aside form button").click()
    window.until(lambda: "The note is kept." in window.text(), "it says so")
    window.one("li.item time").click()
    window.at("/note?")
    window.one("details.edit summary").click()
    window.one("#content").clear()
    window.one("#content").send_keys("Seen and changed.")
    window.one("details.edit button").click()
    window.until(lambda: window.one(".text-card").text == "Seen and changed.", "the text changed")
    window.one(".panel li form button").click()
    window.until(lambda: window.one(".text-card").text == "Seen in a browser.", "the change was undone")
    window.go("/remembered?key=build")
    window.one(".beside button").click()
    window.until(lambda: "pinned" in window.one(".sub").text, "it is pinned")
    window.go("/notepad?session=port-parser")
    [one for one in window.all("button") if one.text == "Restore"][-1].click()
    window.until(lambda: "Findings" not in window.one(".text-card").text, "the first version is back")
    window.go("/session?id=docs")
    window.one(".beside button").click()
    window.until(lambda: "archived" in window.one("h1").text, "it is archived")
    window.one(".beside button").click()
    window.until(lambda: "active" in window.one("h1").text, "it is active again")
    window.unharmed("changes")


def test_an_open_page_follows_what_happens(window: Window, site: Served) -> None:
    window.go("/notes")
    window.until(lambda: window.driver.execute_script("return document.body.dataset.seen"), "it listens")
    with wiring.open(site.store, project=PROJECT) as hold:
        hold.session("docs").notes.add("Written while you look <b>on</b>.")
    window.until(lambda: "Written while you look <b>on</b>." in window.text(), "the new note is shown")
    window.one("#new").send_keys("half a thou")
    with wiring.open(site.store, project=PROJECT) as hold:
        hold.session("docs").notes.add("Another one.")
    window.until(lambda: window.all("#pulse.waiting"), "it waits for who types")
    assert window.one("#new").get_attribute("value") == "half a thou"
    window.unharmed("live")


def test_signing_out(window: Window) -> None:
    window.one("header form[action='/sign-out'] button").click()
    window.at("/sign-in")
    window.go("/overview")
    assert "Sign in" in window.text()


def test_it_works_without_scripts(window: Window) -> None:
    window.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        window.go("/notes")
        window.one("#new").send_keys("No script was needed.")
        window.one("aside form button").click()
        window.until(lambda: "The note is kept." in window.text(), "it is kept")
        window.one("#search").send_keys("script needed", Keys.ENTER)
        window.until(lambda: "No script was needed." in window.text().replace("\n", " "), "it is found")
    finally:
        window.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_look_at_every_page(window: Window) -> None:
    """Screenshots, and what can be measured of how it looks: nothing is wider than the window, texts have contrast."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    wrong = []
    window.go(next(iter(PAGES.values())))
    window.driver.execute_script("localStorage.clear()")  # a theme that another test chose by hand would win
    for theme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for size, (width, height) in SIZES.items():
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            for name, path in PAGES.items():
                window.go(path)
                if (window.driver.execute_script(BRIGHTNESS) < 128) != (theme == "dark"):
                    wrong.append(f"{name} {theme} {size}: not in that theme")
                if window.driver.execute_script("return document.documentElement.scrollWidth") > width:
                    wrong.append(f"{name} {theme} {size}: wider than the window")
                pale = window.driver.execute_script(PALE) if size == "wide" else []
                wrong += [f"{name} {theme} {size}: {one}" for one in pale]
                window.driver.save_screenshot(str(SHOTS / f"{name}-{theme}-{size}.png"))
    window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    print(f"screenshots: {SHOTS}")
    assert not wrong, "\n".join(wrong[:20])
    window.unharmed("looks")


AXE = "axe-core@4.11.0"
BREACHES = """
const done = arguments[0];
axe.run().then(found => done(found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 120)).slice(0, 3).join(' | ')}`)));
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which finds what people with a screen reader or a keyboard cannot use."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm, which brings axe-core, is not there: nothing was said about screen readers")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", AXE]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def test_nothing_serious_stands_in_the_way_of_a_screen_reader(window: Window, axe: str) -> None:
    breaches = []
    for theme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for name, path in PAGES.items():
            window.go(path)
            window.driver.execute_script(axe)
            breaches += [f"{name} {theme}: {one}" for one in window.driver.execute_async_script(BREACHES)]
    assert not breaches, "\n".join(breaches)


def test_a_newcomer_gets_along(driver: webdriver.Chrome, tmp_path: Path) -> None:
    """Connects an agent, imports its sessions, reads one, corrects a fact, undoes that, reviews a proposal, exports."""
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    kept = home / ".claude" / "projects" / str(folder).replace("/", "-")
    kept.mkdir(parents=True)
    said = ("Totals differ by a cent. Why?", "Every line is **rounded**. I round once.")
    (kept / "7f0c1d2e-aaaa-4bbb-8ccc-000000000002.jsonl").write_text(
        "".join(transcript(folder, said)), encoding="utf-8"
    )
    env = {"HOME": str(home), "LIMPET_HOME": str(home / "data")}
    store = str(tmp_path / "limpet.db")
    with served(store, folder, **env) as site:
        driver.delete_all_cookies()
        window = Window(driver, site.url)
        window.go(site.dashboard)
        window.at("/start")
        commands = [one.text for one in window.all("code.command")]
        install, take = (
            next(one for one in commands if one.startswith(f"limpet {verb}")) for verb in ("install", "import")
        )
        for command in (f"{install} --dry-run", take):
            arguments = [sys.executable, "-m", *command.split(), "--store", store, "--project", PROJECT]
            done = subprocess.run(
                arguments if "import" in command else arguments[:-4],
                cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        window.go("/sessions")
        window.one("main .item a").click()
        window.at("/session?")
        window.one("a.go").click()
        window.at("/messages?")
        window.until(lambda: "I round once." in window.text(), "what was said can be read")
        assert window.one("main strong + a, .md strong") is not None
        window.go("/memory")
        window.one("#new-key").send_keys("rounding")
        window.one("#new").send_keys("Every line is rounded.")
        window.one("aside form button").click()
        window.until(lambda: "Memory was saved." in window.text(), "it is remembered")
        window.go("/remembered?key=rounding")
        window.one("details.edit summary").click()
        window.one("#content").clear()
        window.one("#content").send_keys("Totals are rounded once.")
        window.one("details.edit form button").click()
        window.until(lambda: len(window.all(".life > li")) == 2, "its life has a correction")
        window.one("form[action='/do/undo'] button").click()
        window.until(lambda: "The change was undone." in window.text(), "it is undone")
        assert window.one(".text-card").text == "Every line is rounded."
        a_proposal_is_reviewed(window, ["--store", store, "--project", PROJECT], folder, env)
        window.go("/settings")
        link = window.one("a[download]").get_attribute("href")
        assert link is not None
        cookies = {cookie["name"]: cookie["value"] for cookie in driver.get_cookies()}
        exported = httpx2.get(link, cookies=cookies, timeout=30)
        assert "Every line is rounded." in exported.text
        window.unharmed("journey")


def a_proposal_is_reviewed(window: Window, place: list[str], folder: Path, env: dict[str, str]) -> None:
    """What an agent says about the person counts when the person accepts it."""
    words = [sys.executable, "-m", "limpet", "memory", "write", "units", "Use kelvin.", "--layer", "person", *place]
    done = subprocess.run(
        words, cwd=folder, env=os.environ | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    window.go("/memory")
    assert "Use kelvin." not in window.text(), "nothing counts before it was accepted"
    window.go("/review")
    window.one("form[action='/do/accept_proposal'] button").click()
    window.until(lambda: "Nothing waits for you." in window.text(), "it is accepted")
    window.go("/memory")
    assert "Use kelvin." in window.text()


def transcript(folder: Path, said: tuple[str, str]) -> list[str]:
    """A session as Claude Code keeps it."""
    shared = {"sessionId": "7f0c1d2e-aaaa-4bbb-8ccc-000000000002", "cwd": str(folder), "version": "2.0.0"}
    rows = []
    for number, (role, text) in enumerate(zip(("user", "assistant"), said, strict=True)):
        content = text if role == "user" else [{"type": "text", "text": text}]
        message = {"role": role, "content": content}
        at = f"2026-03-02T10:00:0{number}.000Z"
        rows.append(
            json.dumps({"type": role, "uuid": f"u{number}", "timestamp": at, "message": message, **shared}) + "\n"
        )
    return rows


# How bright the page is behind everything, from 0 to 255.
BRIGHTNESS = """
const canvas = document.createElement('canvas').getContext('2d');
canvas.fillStyle = getComputedStyle(document.body).backgroundColor; canvas.fillRect(0, 0, 1, 1);
const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data; return (r + g + b) / 3;
"""

# Texts whose contrast with what is behind them is less than 4.5 to 1, with the classes they have.
PALE = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
const over = (top, under) => top.slice(0, 3).map((v, at) => v * top[3] + under[at] * (1 - top[3]));
const behind = (one) => {
  const stack = [];
  for (let at = one; at; at = at.parentElement) stack.push(rgba(getComputedStyle(at).backgroundColor));
  return stack.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
};
const found = new Set();
for (const one of document.querySelectorAll('body *')) {
  const own = [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  const box = one.getBoundingClientRect();
  if (!own || !box.width || !box.height || one.closest('svg, .unseen, dialog, .skip, .faded')) continue;
  const under = behind(one), over_ = over(rgba(getComputedStyle(one).color), under);
  const [a, b] = [light(over_), light(under)].sort((x, y) => y - x);
  const ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) found.add(`${one.tagName} .${one.className}: ${ratio.toFixed(2)}`);
}
return [...found].slice(0, 6);
"""
