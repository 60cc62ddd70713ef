"""The explorer in a real browser: every action, the model's numbers, and nothing from elsewhere."""

import contextlib
import re
import time

import numpy as np
import pytest
from sklearn.datasets import load_wine

from ravine import MinimumDensity, explore
from tests import chromium as chromium_tools

pytestmark = chromium_tools.needs_chromium
WINE = load_wine(as_frame=True).data
X = WINE.to_numpy()
BAD = "<img src=x onerror='window.hacked = 1'>"
NAMES = [*list(WINE)[:-1], BAD]  # the strongest column of the first split
MODEL = MinimumDensity(3).fit(X)


@pytest.fixture(scope="module")
def chromium():
    browser = chromium_tools.start(1500, 1100)
    yield browser
    browser.quit()


@pytest.fixture
def explorer(tmp_path):
    found = explore(
        MODEL,
        X,
        open_browser=False,
        session=tmp_path,
        feature_names=NAMES,
        source="wine <b>.csv",
        row_ids=[f"bottle {i}" for i in range(178)],
        row_html=lambda i: f"<b>picture of {i}</b>",
    )
    yield found
    found.stop()


@pytest.fixture
def page(chromium, explorer):
    """The page of a new session; at the end nothing may have gone wrong in it."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    chromium_tools.requested(chromium)  # the page before this one may have asked until it was left
    chromium.get(explorer.address)
    until(
        chromium,
        lambda: "178 rows in 3 clusters" in text(chromium, "lead") and text(chromium, "threshold-note"),
    )
    yield chromium
    asked = chromium_tools.requested(chromium)
    assert asked
    assert all(url.startswith((explorer.address, "chrome:", "about:")) for url in asked), asked
    assert chromium.get_log("browser") == []
    assert chromium.execute_script("return window.hacked") is None
    chromium.get("about:blank")


def text(browser, name):
    return browser.find_element("id", name).text


def until(browser, what):
    """Wait for something; the page replaces what it draws, so that an element may be gone."""
    from selenium.common.exceptions import StaleElementReferenceException

    for _ in range(150):
        with contextlib.suppress(StaleElementReferenceException):
            if what():
                return
        time.sleep(0.1)
    raise AssertionError(f"waited in vain: {browser.find_element('tag name', 'body').text[:800]}")


def done(browser, explorer, line):
    """Wait until an action has become the last line of Python, on the page and in the session."""
    until(
        browser, lambda: re.search(line, text(browser, "code").splitlines()[-1]) and not text(browser, "busy")
    )
    assert text(browser, "code").splitlines() == [one for lines in explorer.session.code() for one in lines]


def choose(browser, node):
    browser.find_element("css selector", f'#tree g[data-node="{node}"]').click()
    until(
        browser,
        lambda: browser.find_element("css selector", "#tree g.on").get_attribute("data-node") == str(node),
    )
    until(browser, lambda: not text(browser, "busy"))


def click(browser, name):
    browser.find_element("id", name).click()


def fill(browser, element, value):
    """Give an input a value as a user would."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change', {bubbles: true}))",
        element,
        value,
    )


def sizes(browser):
    shown = "return [...document.querySelectorAll('#clusters .n')].map(one => one.textContent)"
    return [int(one.replace(",", "")) for one in browser.execute_script(shown)]


def test_it_shows_the_numbers_of_the_model(page, explorer):
    assert sizes(page) == np.bincount(MODEL.labels_).tolist()
    sides = f"left {explorer.tree.weight[1]:g} | right {explorer.tree.weight[2]:g} rows"
    assert f"{sides}, quality {explorer.tree.splits[0].quality:.2f}" in text(page, "threshold-note")
    assert page.find_element("css selector", "#columns tbody th").text == BAD
    assert text(page, "title") == "wine <b>.csv"
    leaf = int(explorer.tree.leaves[0])
    choose(page, leaf)
    rows = [row.text for row in page.find_elements("css selector", "#exemplars tbody th")]
    typical = explorer.tree.exemplars(X)[0]
    assert rows[:3] == [f"bottle {i}" for i in typical]
    shown = [one.text for one in page.find_elements("css selector", "#exemplars tbody b")]
    assert shown[:3] == [f"picture of {i}" for i in typical]
    assert "of the variance" in text(page, "map-note")
    named = [one for one in page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"] if "role" in one]
    roles = {"button", "link", "slider", "checkbox", "textbox", "combobox", "spinbutton", "heading"}
    mute = [one for one in named if one["role"]["value"] in roles and not one["name"]["value"].strip()]
    assert mute == []


def test_every_action_on_the_tree(page, explorer):
    choose(page, 2)
    click(page, "split")
    done(page, explorer, r"tree\.resplit\(2, MinimumDensity\(2\), X\)")
    assert sizes(page) == np.bincount(explorer.labels).tolist()
    assert len(sizes(page)) == 4
    ticks = page.find_elements("css selector", "#clusters input[type=checkbox]")
    ticks[0].click()
    ticks[2].click()
    click(page, "merge")
    done(page, explorer, r"tree\.merge\(0, 2\)")
    assert sizes(page) == np.bincount(explorer.labels).tolist()
    click(page, "undo")
    done(page, explorer, "resplit")
    click(page, "redo")
    done(page, explorer, "merge")
    click(page, "undo")
    done(page, explorer, "resplit")
    choose(page, 1)
    click(page, "prune")
    done(page, explorer, r"tree\.prune\(1\)")
    assert len(sizes(page)) == 3
    fill(page, page.find_element("id", "cut"), 2)
    done(page, explorer, r"tree\.cut\(2\)")
    assert sizes(page) == np.bincount(explorer.labels).tolist()
    assert not page.find_element("id", "redo").is_enabled()


def test_the_script_is_copied(page, explorer):
    allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": allowed})
    choose(page, 1)
    click(page, "prune")
    done(page, explorer, r"tree\.prune\(1\)")
    click(page, "copy")
    until(page, lambda: text(page, "copy") == "Copied")
    copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == explorer.script


def test_names(page, explorer):
    name = page.find_element("css selector", '#clusters li[data-label="1"] input[type=text]')
    name.send_keys(BAD, "\n")
    done(page, explorer, "names = ")
    assert explorer.session.state.names == {1: BAD}
    assert BAD in page.find_element(
        "css selector", f'#tree g[data-node="{explorer.tree.leaves[1]}"]'
    ).get_attribute("aria-label")


def test_a_threshold_is_dragged_and_moved_by_keys(page, explorer):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    before = explorer.tree.weight.copy()
    handle = page.find_element("css selector", "#handle circle")
    drag = ActionChains(page).click_and_hold(handle).move_by_offset(15, 0).move_by_offset(10, 0)
    chromium_tools.requested(page)
    drag.perform()
    until(page, lambda: "about" in text(page, "threshold-note"))
    asked = chromium_tools.requested(page)
    assert asked <= {f"{explorer.address}api/version"}  # a threshold on its way asks the server nothing
    told = [int(n) for n in re.findall(r"(?:left|right) (\d+)", text(page, "threshold-note"))]
    assert sum(told) == 178
    ActionChains(page).release().perform()
    done(page, explorer, r"tree\.move\(0, ")
    assert explorer.tree.weight[1] > before[1]
    assert f"left {explorer.tree.weight[1]:g} | " in text(page, "threshold-note")
    handle = page.find_element("id", "handle")
    page.execute_script("arguments[0].focus()", handle)
    for key in (Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ENTER):
        page.switch_to.active_element.send_keys(key)
    done(page, explorer, r"tree\.move\(0, -")
    assert len(explorer.session.states) == 3


def test_marked_rows_steer_the_split(page, explorer):
    from selenium.webdriver import ActionChains

    canvas = page.find_element("id", "map")
    box = canvas.rect
    corner = ActionChains(page).move_to_element_with_offset(
        canvas, -box["width"] // 2 + 3, -box["height"] // 2 + 3
    )
    corner.click_and_hold().move_by_offset(box["width"] // 3, box["height"] // 2).release().perform()
    until(page, lambda: "chosen" in text(page, "chosen") and "No" not in text(page, "chosen"))
    click(page, "mark")
    done(page, explorer, r"y\[\[.*\]\] = 0")
    choose(page, int(explorer.tree.leaves[-1]))
    page.execute_script("document.querySelector('#exemplars input').click()")
    fill(page, page.find_element("id", "class"), 1)
    click(page, "mark")
    done(page, explorer, r"y\[\[\d+\]\] = 1")
    choose(page, 0)
    click(page, "split")
    until(page, lambda: "fit(X, y=y)" in text(page, "code"))
    y = explorer.session.state.partial_labels(len(X))
    np.testing.assert_array_equal(explorer.labels, MinimumDensity(2).fit(X, y).labels_)
    click(page, "unmark")
    done(page, explorer, "= -1")
    assert text(page, "marks") == ""


def test_methods_and_kernels_are_used(page, explorer):
    from selenium.webdriver.support.ui import Select

    Select(page.find_element("id", "method")).select_by_value("PrincipalDirection")
    click(page, "split")
    until(page, lambda: "PrincipalDirection(2).fit(X)" in text(page, "code") and not text(page, "busy"))
    Select(page.find_element("id", "method")).select_by_value("MinimumDensity")
    Select(page.find_element("id", "kernel")).select_by_visible_text("rbf")
    click(page, "split")
    until(page, lambda: "kernel='rbf'" in text(page, "code") and not text(page, "busy"))
    assert sizes(page) == np.bincount(MinimumDensity(2, kernel="rbf").fit(X).labels_).tolist()
    assert page.find_element("css selector", "#columns tbody th").text in NAMES
    assert not page.find_element("id", "sql").is_displayed()
    choose(page, 1)
    assert not page.find_element("id", "kernel").is_enabled()


def test_an_error_is_a_sentence_on_the_page(page, explorer):
    field = page.find_element("id", "number")
    field.clear()
    field.send_keys("500")
    click(page, "split")
    until(page, lambda: "n_clusters=500 is more than" in text(page, "message"))
    assert len(explorer.session.states) == 1
    page.get_log("browser")  # the browser notes the status of the answer


def test_two_tabs_agree_and_a_reload_loses_nothing(page, explorer):
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    page.get(explorer.address)
    until(page, lambda: len(sizes(page)) == 3 and text(page, "threshold-note"))
    choose(page, 1)
    click(page, "prune")
    done(page, explorer, r"prune\(1\)")
    page.close()
    page.switch_to.window(first)
    until(page, lambda: len(sizes(page)) == 2)
    page.refresh()
    until(page, lambda: sizes(page) == np.bincount(explorer.labels).tolist())
    assert text(page, "code").endswith("tree = tree.prune(1)")


def test_a_phone_and_the_dark(page):
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide, width = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width == 360
    assert wide <= width
    for scheme in ("light", "dark"):
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_end_of_the_server_is_told(page, explorer):
    explorer.stop()
    until(page, lambda: "does not answer" in text(page, "message"))
    page.get("about:blank")
    page.get_log("browser")  # the browser notes that nobody answers
