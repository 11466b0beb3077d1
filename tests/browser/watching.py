"""A page in a browser: what it requests, which rows it shows, and whether it can be read."""

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page

ROWS = "tr[data-kind]"
CONTRAST = """() => {
  const luminance = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
  };
  const texts = [...document.querySelectorAll("body *:not(script, option)")]
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return Math.min(...texts.map((one) => {
    const [a, b] = [luminance(getComputedStyle(one).color), luminance(behind(one))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
}"""
"""The lowest contrast of a text with what is behind it."""


def listened(context: BrowserContext, heard: list[str]) -> Page:
    """Yield a new tab whose requests, console messages and errors are recorded."""

    def keep(message: ConsoleMessage) -> None:
        heard.append(message.text)

    tab = context.new_page()
    tab.on("request", lambda request: heard.append(request.url))
    tab.on("console", keep)
    tab.on("pageerror", lambda error: heard.append(error.message))
    return tab


def entities(page: Page) -> Locator:
    """Return the entities of the visible rows."""
    return page.locator(f"{ROWS}:visible td:nth-child(2) code")
