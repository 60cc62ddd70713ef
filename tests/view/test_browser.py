"""The report in a real browser: it opens, shows the model's numbers, and requests nothing else."""

import base64
import io
import time
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_wine

from ravine import MinimumDensity, explain, report
from tests import chromium as chromium_tools

pytestmark = chromium_tools.needs_chromium
WINE = load_wine(as_frame=True)
BAD = "<script>window.hacked = 1</script>"
NAMES = [BAD, *WINE.data.columns[1:]]


@pytest.fixture(scope="module")
def model():
    return MinimumDensity("auto").fit(WINE.data.to_numpy())


@pytest.fixture(scope="module")
def address(model, tmp_path_factory):
    page = report(
        model,
        WINE.data.to_numpy(),
        feature_names=NAMES,
        labels=WINE.target,
        row_ids=[f"bottle {i}" for i in range(178)],
        source=BAD,
        command="ravine fit wine.csv",
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def chromium(downloads):
    browser = chromium_tools.start(downloads=downloads)
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium, address):
    """The page, freshly opened on a wide screen; at the end nothing may have gone wrong in it."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    chromium.get(address)
    yield chromium
    assert chromium.get_log("browser") == []
    assert chromium_tools.requested(chromium) == {address}
    assert chromium.execute_script("return window.hacked") is None


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def cells(node, table):
    """The rows of a table as they are shown."""
    rows = f'[...arguments[0].querySelectorAll("table.{table} tbody tr")]'
    return node.parent.execute_script(f"return {rows}.map(row => [...row.cells].map(c => c.innerText))", node)


def shown(value):
    """A number as the page writes it."""
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "\u2212")


def test_a_click_opens_a_split_and_shows_the_model_s_numbers(browser, model):
    explained = explain(model, WINE.data.to_numpy(), NAMES)
    for number, split in explained.splits.items():
        (node,) = find(browser, f"#node-{number}")
        body = node.find_element("css selector", ".body")
        if number == 0:  # the first split is open
            assert body.is_displayed()
            node.find_element("css selector", "summary").click()
        assert not body.is_displayed()
        node.find_element("css selector", "summary").click()
        assert body.is_displayed()
        made = model.tree_.splits[number]
        assert f"{made.quality:.3f}, from 0" in body.text
        assert f"p = {made.evidence.p_value:.2g}:" in body.text
        expected = [
            [d.feature, shown(d.left_mean), shown(d.right_mean), f"{100 * d.contribution:.0f}\u00a0%", ""]
            for d in split.drivers[:8]
        ]
        assert cells(node, "drivers") == expected
        figure = node.find_element("css selector", "figure svg")
        assert f"left: {split.left_weight:g} rows" in figure.text
        assert figure.size["height"] > 100
        node.find_element("css selector", "summary").click()
        assert not body.is_displayed()


def test_clusters_show_their_rows_and_exemplars(browser, model):
    explained = explain(model, WINE.data.to_numpy(), NAMES)
    exemplars = model.tree_.exemplars(WINE.data.to_numpy())
    for leaf in model.tree_.leaves:
        cluster = explained.clusters[model.tree_.label[leaf]]
        (node,) = find(browser, f"#node-{leaf}")
        summary = node.find_element("css selector", "summary")
        assert f"Cluster {cluster.label}: {cluster.weight:g} rows" in summary.text
        summary.click()
        profile = cells(node, "profile")
        assert [row[:3] for row in profile] == [
            [t.feature, shown(t.mean), shown(t.rest_mean)] for t in cluster.traits[:8]
        ]
        assert [row[0] for row in cells(node, "exemplars")] == [
            f"bottle {i}" for i in exemplars[cluster.label]
        ]
    rows = [row[1] for row in cells(browser.find_element("css selector", "main"), "clusters")]
    assert rows == [str(n) for n in np.bincount(model.labels_)]


def test_a_name_that_is_a_script_is_only_shown(browser):
    assert BAD in browser.find_element("css selector", ".lead").text
    assert BAD in browser.find_element("css selector", "main").get_attribute("textContent")
    assert len(find(browser, "script")) == 1


def test_a_link_opens_its_node(browser, model):
    from selenium.webdriver.support.ui import WebDriverWait

    leaf = model.tree_.leaves[-1]
    browser.find_element("css selector", f'table.clusters a[href="#node-{leaf}"]').click()
    opened = "return document.getElementById(arguments[0]).open"

    def wait_until_open(node):  # the event comes after the click
        WebDriverWait(browser, 10).until(lambda page: page.execute_script(opened, node))

    wait_until_open(f"node-{leaf}")
    assert "Cluster" in browser.switch_to.active_element.text
    browser.find_element("css selector", "#node-0 > summary").click()  # closes it
    browser.find_element("css selector", '.depths a[href="#node-0"]').click()
    wait_until_open("node-0")


def test_the_keyboard_is_enough(browser, model):
    from selenium.webdriver.common.keys import Keys

    def press(key):
        browser.switch_to.active_element.send_keys(key)

    def opened():
        return browser.execute_script(
            'return [...document.querySelectorAll(".tree details[id]")].map(d => d.open)'
        )

    press(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the tree"
    press(Keys.ENTER)
    for _ in range(3):  # past the two buttons
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert "split by" in browser.switch_to.active_element.text
    assert opened() == [True] + [False] * (model.tree_.n_nodes - 1)
    press(Keys.ARROW_DOWN)
    press(Keys.SPACE)
    assert opened()[:2] == [True, True]
    press(Keys.ARROW_UP)
    press(Keys.ENTER)
    assert opened()[:2] == [False, True]
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for button, state in (("open-all", True), ("close-all", False)):
        browser.find_element("id", button).send_keys(Keys.ENTER)
        assert opened() == [state] * model.tree_.n_nodes


def test_paper_shows_everything(browser, model):
    folds = ".tree details[id], #words details"  # nodes, method and glossary
    states = f'return [...document.querySelectorAll("{folds}")].map(d => d.open)'
    find(browser, ".tree details[id] > summary")[1].click()
    before, note = browser.execute_script(states), browser.find_element("id", "map-note").text
    browser.execute_script('window.dispatchEvent(new Event("beforeprint"))')
    assert browser.execute_script(states) == [True] * (model.tree_.n_nodes + 2)
    assert "first split" in browser.find_element("id", "map-note").text
    browser.execute_script('window.dispatchEvent(new Event("afterprint"))')
    assert browser.execute_script(states) == before
    assert browser.find_element("id", "map-note").text == note
    pages = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]).count(b"/Type /Page\n")
    assert pages >= 3


def test_a_phone_needs_no_sideways_scrolling(browser):
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.find_element("id", "open-all").click()
    wide, width = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width == 360
    assert wide <= width


CONTRAST = """
const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = c => { const [r, g, b] = c.match(/[0-9.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (c !== "rgba(0, 0, 0, 0)") return c; } return "rgb(255, 255, 255)"; };
const found = [];
const filled = ".depths a text, .tag text, text.number";  // on a shape of their own
const plain = "h1, p, th, td, summary .what, .soft, :not(svg) > a, .chip, button, dt, dd, pre, svg > text";
const all = filled + ", " + plain;
for (const e of document.querySelectorAll(all)) {
  const style = getComputedStyle(e);
  const shape = e.matches(filled) && e.previousElementSibling;
  const ground = shape ? getComputedStyle(shape).fill : behind(e);
  const [a, b] = [light(e.closest("svg") ? style.fill : style.color), light(ground)].sort((x, y) => y - x);
  found.push([(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 80)]);
}
return found.sort((x, y) => x[0] - y[0])[0];
"""


def test_text_stands_out_in_light_and_dark(browser):
    browser.find_element("id", "open-all").click()
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        contrast, where = browser.execute_script(CONTRAST)
        assert contrast >= 4.5, (scheme, where)


def test_the_two_sides_differ_for_every_eye(browser):
    from PIL import Image

    (figure,) = find(browser, "#node-0 figure svg.density")
    for sight in ("protanopia", "deuteranopia", "tritanopia", "achromatopsia"):
        browser.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": sight})
        picture = Image.open(io.BytesIO(figure.screenshot_as_png)).convert("RGB")
        browser.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": "none"})
        counts = sorted(picture.getcolors(1 << 20), reverse=True)
        two = np.array([color for _, color in counts[:3] if min(color) < 225][:2], dtype=float)
        assert np.abs(two[0] - two[1]).max() > 40, (sight, two)


def test_a_screen_reader_finds_names_for_everything(browser, model):
    browser.find_element("id", "open-all").click()
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named: dict[str, list[str]] = {}
    for item in tree:
        if not item.get("ignored"):
            role = item["role"]["value"]
            named.setdefault(role, []).append(item.get("name", {}).get("value", ""))
    nodes = [name for name in named["DisclosureTriangle"] if "rows" in name]
    assert len(nodes) == model.tree_.n_nodes
    pictures = named.get("image", []) + named.get("img", []) + named.get("graphics-document", [])
    assert sum(name.startswith("Density of the rows") for name in pictures) == model.tree_.n_leaves - 1
    for role in ("link", "button", "heading", "columnheader", "rowheader"):
        assert all(name.strip() for name in named[role]), role
    assert browser.find_element("css selector", "html").get_attribute("lang") == "en"


def wait_for(path, what=lambda text: True):
    for _ in range(100):
        if path.exists() and what(path.read_text()):
            return path.read_text()
        time.sleep(0.1)
    raise AssertionError(f"{path} was not written")


def test_pictures_are_saved_from_the_page(browser, model, downloads):
    names = [
        button.get_attribute("data-file") for button in find(browser, "button.save") if button.is_displayed()
    ]
    assert {"map.svg", "tree.svg", "columns.svg", "split-0.svg"} <= set(names)
    for name in ("map.svg", "tree.svg"):
        find(browser, f'button.save[data-file="{name}"]')[0].click()
        picture = ElementTree.fromstring(wait_for(downloads / name))
        assert picture.tag.endswith("svg")
    dots = [part for part in picture.iter() if part.tag.endswith("rect")]
    assert len(dots) == model.tree_.n_nodes
    assert "rgb(19, 124, 199)" in (downloads / "tree.svg").read_text()  # colors are in the file itself


def test_the_map_shows_the_open_split_and_its_rows(browser, model):
    def dim():
        return {
            int(part.get_attribute("data-leaf"))
            for part in find(browser, "svg.map .dots")
            if "dim" in part.get_attribute("class")
        }

    points = sum(part.get_attribute("d").count("M") for part in find(browser, "svg.map .dots"))
    assert points == len(WINE.data)
    assert dim() == set()
    (line,) = find(browser, "svg.map .line.on")
    assert line.get_attribute("data-node") == "0"
    inner = next(int(node) for node in model.tree_.inner if node)
    browser.find_element("css selector", f"#node-{inner} > summary").click()
    outside = {int(leaf) for leaf in model.tree_.leaves if inner not in model.tree_.path(leaf)}
    assert dim() == outside
    assert "split that is open" in browser.find_element("id", "map-note").text


def test_tables_are_sorted_and_searched(browser):
    main = browser.find_element("css selector", "main")
    before = [row[0] for row in cells(main, "ranking")]
    find(browser, "table.ranking button.sort")[0].click()
    names = [row[0] for row in cells(main, "ranking")]
    assert names == sorted(before, key=str.lower, reverse=True)
    rows = find(browser, "table.clusters button.sort")[1]
    rows.click()
    sizes = [int(row[1]) for row in cells(main, "clusters")]
    assert sizes == sorted(sizes, reverse=True)
    browser.find_element("css selector", ".scroll input.find").send_keys("phenols")
    shown = [row for row in find(browser, "table.ranking tbody tr") if row.is_displayed()]
    assert {row.find_element("css selector", "th").text for row in shown} == {
        "total_phenols",
        "nonflavanoid_phenols",
    }
