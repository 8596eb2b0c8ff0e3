// Reports observations of the page to the parent frame. This script runs first, to record blocked requests.
const blocked = [];
addEventListener("securitypolicyviolation", (e) => blocked.push(e.blockedURI));

function rgb(text) {
  const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
  return { r, g, b, a };
}

function luminance({ r, g, b }) {
  const [x, y, z] = [r, g, b].map((v) => {
    v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

function background(element) {
  for (let e = element; e; e = e.parentElement) {
    const found = rgb(getComputedStyle(e).backgroundColor);
    if (found.a > 0) return found;
  }
  return { r: 255, g: 255, b: 255 };
}

function contrast(element) {
  const style = getComputedStyle(element);
  const ink = element instanceof SVGElement ? style.fill : style.color;
  const pair = [luminance(rgb(ink)), luminance(background(element))].sort((a, b) => b - a);
  return (pair[0] + 0.05) / (pair[1] + 0.05);
}

function name(element) {
  return `${element.tagName} ${element.textContent.trim().slice(0, 40)}`;
}

addEventListener("load", () => {
  if (opened) for (const one of document.querySelectorAll("details")) one.open = true;
  const root = document.documentElement;
  const out = [];
  const faint = [];
  const squeezed = [];
  const scrolling = [...document.querySelectorAll(".wide")].filter(
    (e) => e.scrollWidth > e.clientWidth
  );
  for (const element of document.body.querySelectorAll("*")) {
    // An element that scrolls may be wider than the window.
    if (element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".wide *")) {
      out.push(name(element));
    }
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.getClientRects().length) continue;
    if (element.textContent.trim().length > 8 && element.getBoundingClientRect().width < 24) {
      squeezed.push(name(element));
    }
    if (contrast(element) < 4.5) {
      faint.push(`${name(element)}: ${contrast(element).toFixed(2)}`);
    }
  }
  const seen = {
    width: innerWidth,
    scroll_width: root.scrollWidth,
    height: root.scrollHeight,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    sticking_out: out.slice(0, 10),
    scrolling: scrolling.map(name).slice(0, 10),
    squeezed: squeezed.slice(0, 10),
    faint: faint.slice(0, 10),
    fetched: performance.getEntriesByType("resource").map((e) => e.name),
    blocked,
  };
  parent.postMessage(JSON.stringify(seen), "*");
});
