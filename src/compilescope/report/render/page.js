"use strict";
/* Search, filters, folding and the light on kin lines. The page reads well without any of it. */
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const tools = document.querySelector(".tools");
  const items = all(".item[data-tags]");
  const texts = new Map();
  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };

  /* An item shows if it has every word searched for and, of each group of chips, a pressed one. */
  function sift() {
    const wanted = document.getElementById("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = all('.chip[aria-pressed="true"]').map((chip) => chip.dataset.tag);
    const groups = new Map();
    for (const tag of pressed) {
      const group = tag.split(":")[0];
      groups.set(group, [...(groups.get(group) || []), tag]);
    }
    let shown = 0;
    for (const item of items) {
      const tags = item.dataset.tags.split(" ");
      const fits = [...groups.values()].every((any) => any.some((tag) => tags.includes(tag)))
        && (!wanted.length || wanted.every((word) => textOf(item).includes(word)));
      item.classList.toggle("gone", !fits);
      shown += fits;
    }
    const sifting = wanted.length || pressed.length;
    for (const part of all(".part")) {
      const inside = all(".item[data-tags]", part);
      part.classList.toggle("gone", Boolean(sifting) && inside.length > 0 && inside.every((item) => item.classList.contains("gone")));
    }
    document.getElementById("found").value = sifting ? `${shown} of ${items.length}` : "";
  }

  if (tools) {
    tools.hidden = false;
    const find = document.getElementById("find");
    let waiting = 0;
    find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(sift, 60); });
    for (const chip of all(".chip")) {
      chip.addEventListener("click", () => {
        chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
        sift();
      });
    }
    const fold = (open) => () => { for (const details of all(".part details")) details.open = open; };
    document.getElementById("open").addEventListener("click", fold(true));
    document.getElementById("shut").addEventListener("click", fold(false));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); find.focus(); }
      if (event.key === "Escape" && document.activeElement === find) { find.value = ""; sift(); find.blur(); }
    });
  }

  /* A link into something folded or filtered away brings it back. */
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let up = target; up; up = up.parentElement) {
      if (up.tagName === "DETAILS") up.open = true;
      up.classList.remove("gone");
    }
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  /* Lines of the panes that share a number belong together. */
  function light(line, scroll) {
    const panes = line.closest(".panes");
    for (const lit of all(".lit", panes)) lit.classList.remove("lit");
    const kin = new Set((line.dataset.k || "").split(" ").filter(Boolean));
    if (!kin.size) return;
    for (const pane of all(".pane", panes)) {
      let first = null;
      for (const other of all("[data-k]", pane)) {
        if (!other.dataset.k.split(" ").some((number) => kin.has(number))) continue;
        other.classList.add("lit");
        first = first || other;
      }
      if (scroll && first && !pane.contains(line)) {
        const box = pane.querySelector("pre");
        box.scrollTop += first.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
      }
    }
  }
  const lineAt = (event) => event.target.closest && event.target.closest(".pane [data-k]");
  document.addEventListener("mouseover", (event) => { const line = lineAt(event); if (line) light(line, false); });
  document.addEventListener("click", (event) => { const line = lineAt(event); if (line) light(line, true); });
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const box = step && event.target.closest && event.target.closest(".pane pre");
    if (!box) return;
    event.preventDefault();
    const lines = all("[data-k]", box);
    const now = lines.findIndex((line) => line.classList.contains("current"));
    const next = lines[Math.min(Math.max(now + step, 0), lines.length - 1)];
    if (!next) return;
    if (now >= 0) lines[now].classList.remove("current");
    next.classList.add("current");
    next.scrollIntoView({ block: "nearest" });
    light(next, true);
  });

  /* The timeline can be stretched. */
  for (const timeline of all(".timeline")) {
    const track = timeline.querySelector(".track");
    let scale = 1;
    for (const [label, factor] of [["Zoom in", 2], ["Zoom out", 0.5]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => {
        scale = Math.min(Math.max(scale * factor, 1), 64);
        track.style.width = `${100 * scale}%`;
      });
      timeline.prepend(button);
    }
  }

  /* Where am I? */
  const links = new Map(all("nav a").map((link) => [link.getAttribute("href").slice(1), link]));
  const watcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      const link = links.get(target.id);
      if (link) link.classList.toggle("now", isIntersecting);
    }
  }, { rootMargin: "-15% 0px -70% 0px" });
  for (const part of all(".part")) watcher.observe(part);
})();
