"use strict";
/* Search, filters and folding. The page reads well without any of it. */
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const tools = document.querySelector(".tools");
  const items = all(".item[data-tags]");
  const texts = new Map();
  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, [item.textContent, ...all(".panes", item).map((panes) => panes.code || "")].join("\n").toLowerCase());
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
    /* Packed code becomes text once somebody searches; then what was found before may be too little. */
    if (wanted.length) document.dispatchEvent(new Event("compilescope:search"));
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
    // However many rows they take: what is scrolled to, or gets focus, is not behind them.
    new ResizeObserver(() => {
      const over = getComputedStyle(tools).position === "sticky" ? tools.offsetHeight + 8 : 0;
      document.documentElement.style.scrollPaddingTop = `${over}px`;
    }).observe(tools);
    const find = document.getElementById("find");
    let waiting = 0;
    document.addEventListener("compilescope:code", () => { texts.clear(); sift(); });
    find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(sift, 60); });
    for (const chip of all(".chip")) {
      chip.addEventListener("click", () => {
        chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
        sift();
      });
    }
    const fold = (open) => () => { for (const details of all(".part details")) details.open = open; };
    document.getElementById("open").addEventListener("click", fold(true));
    document.getElementById("close").addEventListener("click", fold(false));
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
    arrive(target, 12);
  }

  /* Entries out of sight have guessed heights: once they come near they push the target away. */
  function arrive(target, tries) {
    target.scrollIntoView();
    if (tries) requestAnimationFrame(() => arrive(target, tries - 1));
  }
  addEventListener("hashchange", reveal);
  reveal();

  /* Where am I? */
  const links = new Map(all('nav a[href^="#"]').map((link) => [link.getAttribute("href").slice(1), link]));
  const parts = all(".part").filter((part) => links.has(part.id));
  let now = null;
  function mark() {
    const above = parts.filter((part) => !part.classList.contains("gone") && part.getBoundingClientRect().top < innerHeight / 3);
    const link = links.get((above.pop() || parts[0] || {}).id) || null;
    if (link === now) return;
    if (now) now.removeAttribute("aria-current");
    now = link;
    if (now) now.setAttribute("aria-current", "true");
  }
  let asked = 0;
  addEventListener("scroll", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(mark); }, { passive: true });
  mark();
})();
