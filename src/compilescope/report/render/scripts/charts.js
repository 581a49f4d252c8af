"use strict";
/* What charts share: a line about the mark that is pointed at, and one tab stop for all marks. */
const charts = (() => {
  /* What a mark says, taken from its tooltip, which would otherwise cover the chart. */
  function about(mark) {
    if (mark.title) {
      mark.dataset.about = mark.title;
      if (mark.tabIndex >= -1 && mark.matches("a, [role]")) mark.setAttribute("aria-label", mark.title);
      mark.removeAttribute("title");
    }
    return mark.dataset.about || "";
  }

  /* `extra(mark)` is a node to end the line with; `usual()` a mark to tell of where none is pointed at. */
  function readout(figure, selector, extra = () => "", usual = () => null) {
    const line = figure.querySelector(".readout");
    const hint = matchMedia("(pointer: coarse)").matches ? line.dataset.touch : line.dataset.hint;
    const tell = (mark) => {
      const [head, ...rest] = about(mark).split("\n");
      const name = document.createElement("strong");
      name.textContent = head;
      line.replaceChildren(name, rest.length ? ` · ${rest.join(" · ")}` : "", extra(mark));
      line.title = line.textContent;
    };
    const rest = () => {
      const held = document.activeElement.closest && document.activeElement.closest(selector);
      const mark = held && figure.contains(held) ? held : usual();
      if (mark) tell(mark);
      else { line.replaceChildren(hint); line.title = ""; }
    };
    figure.addEventListener("pointerover", (event) => {
      const mark = event.target.closest(selector);
      if (mark) tell(mark);
    });
    figure.addEventListener("pointerleave", rest);
    figure.addEventListener("focusin", (event) => { if (event.target.matches(selector)) tell(event.target); });
    figure.addEventListener("focusout", () => setTimeout(rest));
    rest();
    return rest;
  }

  /* Tab reaches one mark, keys go on from it: `next(mark, key)` says where to. */
  function rove(box, selector, next) {
    let current = null;
    const settle = () => {
      const marks = [...box.querySelectorAll(selector)].filter((mark) => !mark.hidden);
      if (!marks.includes(current)) current = marks[0] || null;
      for (const mark of marks) mark.tabIndex = mark === current ? 0 : -1;
    };
    box.addEventListener("focusin", (event) => {
      if (!event.target.matches(selector)) return;
      if (current) current.tabIndex = -1;
      current = event.target;
      current.tabIndex = 0;
    });
    box.addEventListener("keydown", (event) => {
      if (!event.target.matches(selector) || event.ctrlKey || event.metaKey || event.altKey) return;
      const other = next(event.target, event.key);
      if (!other) return;
      event.preventDefault();
      event.stopPropagation();
      other.focus();
    });
    settle();
    return settle;
  }

  /* Work that waits until the chart is near the screen: a long page opens at once. */
  function whenNear(figure, begin) {
    const watcher = new IntersectionObserver((seen) => {
      if (!seen.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      begin(figure);
    }, { rootMargin: "400px" });
    watcher.observe(figure);
  }

  return { readout, rove, whenNear };
})();
