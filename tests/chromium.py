"""A real browser for the tests of pages."""

import json
import shutil

import pytest

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    BINARY is None or DRIVER is None,
    reason="no chromium and chromedriver: the page was not looked at in a browser "
    "(apt-get install chromium chromium-driver)",
)


def start(width=1100, height=900, downloads=None):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = BINARY
    size = f"--window-size={width},{height}"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", size):
        options.add_argument(argument)
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


def requested(browser):
    """The addresses that were asked for since the last look, without fragments and data."""
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {
        message["params"]["request"]["url"].partition("#")[0]
        for message in asked
        if message["method"] == "Network.requestWillBeSent"
    }
    return {url for url in urls if not url.startswith(("data:", "blob:"))}
