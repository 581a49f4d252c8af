"""What tests of pages in a browser share."""

from __future__ import annotations

# The contrast of every bit of text with what is painted behind it, as WCAG 2 computes it.
CONTRAST = """
const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(text) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
  const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255];
}
function behind(element) {
  const layers = [];
  for (let up = element; up; up = up.parentElement) {
    const colour = rgba(getComputedStyle(up).backgroundColor);
    if (colour[3] > 0) layers.push(colour);
    if (colour[3] === 1) break;
  }
  let base = [255, 255, 255];
  for (const [r, g, b, a] of layers.reverse()) {
    base = [r, g, b].map((v, i) => v * a + base[i] * (1 - a));
  }
  return base;
}
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.closest('script, style')) continue;
  if (!element.checkVisibility()) continue;
  const colour = rgba(getComputedStyle(element).color);
  if (colour[3] === 0) continue;
  const [a, b] = [light(colour), light(behind(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push([element.className, walker.currentNode.data.slice(0, 30), ratio]);
}
return poor.slice(0, 10);
"""
