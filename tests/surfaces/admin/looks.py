"""What can be measured of a page: its width, its targets, its contrast. Asked of a real browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 360, "height": 740}

#: Whatever is pressed or filled in, but links within a sentence; a tick counts by its label.
TARGETS = """() => [...document.querySelectorAll('#content, body.k-alone')].flatMap(root =>
  [...root.querySelectorAll('a[href], button, select, textarea, summary, input:not([type=hidden])')])
  .filter(node => !node.closest('p') && node.checkVisibility())
  .map(node => node.type === 'checkbox' ? node.closest('label') : node)
  .map(node => ({what: node.outerHTML.slice(0, 90), box: node.getBoundingClientRect()}))
  .filter(({box}) => box.height < 43.9 || box.width < 43.9)
  .map(({what, box}) => `${what} is ${box.width} x ${box.height}`)"""

#: Every element with text of its own whose contrast is under AA (4.5, or 3 for large text).
CONTRAST = """() => {
  document.getAnimations().forEach(animation => animation.finish());
  const channels = colour => { const [r, g, b, a = 1] = colour.match(/[0-9.]+/g).map(Number); return {r, g, b, a}; };
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ({r, g, b}) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const found = channels(getComputedStyle(at).backgroundColor);
      if (found.a === 1) return found;
    }
    return {r: 255, g: 255, b: 255, a: 1};
  };
  const root = document.querySelector('#content') || document.body;
  return [...root.querySelectorAll('*')].filter(node =>
    node.checkVisibility() && !node.closest('.visually-hidden') && !['OPTION', 'SCRIPT'].includes(node.tagName) &&
    [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())
  ).map(node => {
    const style = getComputedStyle(node);
    const [one, two] = [light(channels(style.color)), light(behind(node))].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    return {ratio: (one + 0.05) / (two + 0.05), least: large ? 3 : 4.5, text: node.textContent.trim().slice(0, 50)};
  }).filter(({ratio, least}) => ratio < least).map(({ratio, text}) => `${ratio.toFixed(2)}: ${text}`);
}"""

WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')].filter(node => node.getBoundingClientRect().right > innerWidth + 1)
  .map(node => node.outerHTML.slice(0, 90)).slice(0, 5).concat('the page scrolls sideways')"""


def faults(page: Page) -> list[str]:
    """Everything measurable that is wrong with the page at its present size, in the present colours."""
    found: list[Any] = page.evaluate(WIDER) + page.evaluate(TARGETS) + page.evaluate(CONTRAST)
    return [str(fault) for fault in found]


def in_sight(page: Page, selector: str) -> bool:
    """Whether the whole of the element is in the window as the page was loaded, without scrolling."""
    size = page.viewport_size
    box = page.locator(selector).bounding_box()
    assert size is not None
    assert box is not None, selector
    return (
        box["y"] >= 0
        and box["x"] >= 0
        and box["y"] + box["height"] <= size["height"]
        and box["x"] + box["width"] <= size["width"]
    )
