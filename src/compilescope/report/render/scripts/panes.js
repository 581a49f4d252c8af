"use strict";
/* The stages of a graph: two side by side, of which the reader picks. Their code lies packed in
   templates and is unpacked when it comes into view, or when somebody searches. */
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const pickers = all(".panes[data-place]");
  const boxes = all("template.box");
  const opened = new Map();

  function unpack(number) {
    if (!opened.has(number)) opened.set(number, read(boxes[number]));
    return opened.get(number);
  }
  async function read(box) {
    const bytes = Uint8Array.from(atob(box.content.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { words, ...content } = JSON.parse(await new Response(stream).text());
    const colours = new Map(Object.entries(words).flatMap(([colour, names]) => names.map((name) => [name, colour])));
    return { colours, ...content };
  }
  async function stagesOf(picker) {
    const [box, graph] = picker.dataset.place.split(" ").map(Number);
    const { lines, graphs, colours } = await unpack(box);
    return graphs[graph].map((stage) => {
      let at = -1;
      return { ...stage, colours, lines: stage.lines.map((step) => lines[at += step]) };
    });
  }

  /* Code in colours. A line is read by itself, whatever stands above it: a kernel inside a string
     then has the colours of code. Only in a user's source may a string go over several lines. */
  const PIECE = /(#.*)|([rbuft]{0,2})("""|'''|"|')|((?:\.?\d)(?:e[+-]\d|[\w.])*)|(@?[a-z_]\w*)|[^\w"'#@.]+|./giy;
  const FIELD = /(\{[^{}]+\})/;
  const AFTER = { '"""': /(?:[^\\]|\\.)*?"""/y, "'''": /(?:[^\\]|\\.)*?'''/y, '"': /(?:[^"\\]|\\.)*"/y, "'": /(?:[^'\\]|\\.)*'/y };
  /* Where a string ends that began before `at`; 0 where it does not. */
  function endOf(text, at, quote) {
    AFTER[quote].lastIndex = at;
    return AFTER[quote].test(text) ? AFTER[quote].lastIndex : 0;
  }
  /* Puts pieces of `text` with their colours into `pieces`; the quotes of a string that is still open. */
  function colour(text, colours, pieces, open = "") {
    const from = open && endOf(text, 0, open);
    if (open) pieces.push(["s", from ? text.slice(0, from) : text]);
    if (open && !from) return open;
    let before = "", defined = false;
    PIECE.lastIndex = from || 0;
    for (let found; (found = PIECE.exec(text)); ) {
      const [piece, comment, prefix, quote, number, word] = found;
      if (quote) {
        const end = endOf(text, PIECE.lastIndex, quote);
        string(text.slice(found.index, end || text.length), /[ft]/i.test(prefix), colours, pieces);
        if (!end) return quote.length > 1 ? quote : "";
        PIECE.lastIndex = end;
      } else {
        const known = word && (colours.get(word) || "");
        const kind = comment ? "c" : number ? "n" : !word ? "" : defined || word[0] === "@" ? "f" : known === "b" && before === "." ? "" : known;
        pieces.push([kind, piece]);
        defined = word ? word === "def" || word === "class" : defined && !piece.trim();
      }
      before = piece;
    }
    return "";
  }
  /* A string; what a formatted one puts in is code. */
  function string(text, formatted, colours, pieces) {
    for (const [index, part] of (formatted ? text.split(FIELD) : [text]).entries()) {
      if (index % 2 === 0) { pieces.push(["s", part]); continue; }
      pieces.push(["s", "{"]);
      colour(part.slice(1, -1), colours, pieces);
      pieces.push(["s", "}"]);
    }
  }

  /* Lines that share a number belong together. */
  const numbers = new WeakMap();
  function kinOf(line) {
    if (!numbers.has(line)) numbers.set(line, (line.dataset.k || "").split(" ").filter(Boolean));
    return numbers.get(line);
  }
  function relight(pane, kin) {
    let first = null;
    for (const lit of all(".lit", pane)) lit.classList.remove("lit");
    for (const line of kin.size ? all("[data-k]", pane) : []) {
      if (!kinOf(line).some((number) => kin.has(number))) continue;
      line.classList.add("lit");
      if (!first && !line.hidden) first = line;
    }
    return first;
  }
  function bring(line, pane) {
    const box = pane.querySelector("pre");
    box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  }
  const chosen = new WeakMap();
  function light(line, scroll) {
    const panes = line.closest(".panes");
    const kin = new Set(kinOf(line));
    chosen.set(panes, kin);
    for (const pane of all(".pane", panes)) {
      const first = relight(pane, kin);
      if (scroll && first && !pane.contains(line)) bring(first, pane);
    }
    hint(panes, kin);
  }
  /* A dot at each stage that the line became part of. */
  function hint(panes, kin) {
    const stages = shelves.get(panes);
    if (!stages) return;
    const has = stages.map(({ kins }) => kins.some((text) => text.split(" ").some((number) => kin.has(number))));
    for (const button of all(".stages button", panes)) button.classList.toggle("has", has[button.value]);
  }

  /* Drawing a stage. */
  const shelves = new WeakMap();
  function lineOf(pieces, kin, number) {
    const line = document.createElement("span");
    if (kin) line.dataset.k = kin;
    if (number) line.append(make("i", {}, String(number)));
    for (const [kind, piece] of pieces) if (piece) line.append(kind ? make("b", { class: kind }, piece) : piece);
    if (!line.textContent) line.append(" ");
    return line;
  }
  function codeOf(stage) {
    let open = "";
    const lines = stage.lines.map((text, index) => {
      const pieces = [];
      open = colour(text, stage.colours, pieces, stage.numbers.length ? open : "");
      return lineOf(pieces, stage.kins[stage.kin[index]], stage.numbers[index]);
    });
    for (const [start, length, label] of stage.folds.slice().reverse()) {
      const inside = lines.slice(start, start + length);
      const kin = new Set(inside.flatMap(kinOf));
      const lead = stage.lines[start].match(/^ */)[0];
      const button = make("button", { type: "button", class: "folded", "aria-expanded": "false" }, lead + label);
      if (kin.size) button.dataset.k = [...kin].join(" ");
      for (const line of inside) line.hidden = true;
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(open));
        for (const line of inside) line.hidden = !open;
      });
      lines.splice(start, 0, button);
    }
    return make("code", {}, ...lines);
  }
  function pick(pane, index) {
    const panes = pane.closest(".panes");
    const stage = shelves.get(panes)[index];
    for (const button of all(".stages button", pane)) button.setAttribute("aria-pressed", String(Number(button.value) === index));
    pane.querySelector("select").value = index;
    const parts = [];
    if (stage.note) parts.push(make("p", { class: "note" }, stage.note));
    parts.push(make("pre", { class: "lines", tabindex: "0", role: "group", "aria-label": stage.title }, codeOf(stage)));
    pane.replaceChildren(pane.firstElementChild, ...parts);
    const first = relight(pane, chosen.get(panes) || new Set());
    if (first) bring(first, pane);
  }
  function paneOf(stages, side) {
    const tabs = stages.map(({ title }, index) =>
      make("button", { type: "button", value: index, "aria-pressed": "false", title }, title.replace(/ graph$/, "")));
    /* A narrow window has no room for tabs. */
    const select = make("select", { "aria-label": "Stage" }, ...stages.map(({ title }, index) => make("option", { value: index }, title)));
    select.addEventListener("change", () => pick(pane, Number(select.value)));
    const pane = make("section", { class: "pane" }, make("div", { class: "stages", role: "group", "aria-label": `Stage in the ${side} pane` }, ...tabs, select));
    for (const tab of tabs) tab.addEventListener("click", () => pick(pane, Number(tab.value)));
    return pane;
  }
  async function fill(picker) {
    if (shelves.has(picker)) return;
    shelves.set(picker, []);
    try {
      shelves.set(picker, await stagesOf(picker));
    } catch (problem) {
      picker.replaceChildren(make("p", {}, `This browser can't unpack the code (${problem}). \`compilescope report --format md\` prints it.`));
      return;
    }
    const stages = shelves.get(picker);
    const kernels = stages.findIndex(({ title, lines }) => title.startsWith("Kernels") && lines.length);
    const last = stages.findLastIndex(({ lines }) => lines.length);
    picker.replaceChildren(paneOf(stages, "left"), paneOf(stages, "right"));
    pick(picker.children[0], 0);
    pick(picker.children[1], kernels > 0 ? kernels : Math.max(last, 0));
  }
  const watcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      fill(target);
    }
  }, { rootMargin: "400px" });
  for (const picker of pickers) {
    picker.replaceChildren();
    watcher.observe(picker);
  }

  /* A search asks for all code: one box after the other, while nothing else is to do. */
  const idle = () => new Promise((done) => (window.requestIdleCallback || setTimeout)(done));
  document.addEventListener("compilescope:search", async () => {
    for (const [number, picker] of pickers.entries()) {
      if (number % 10 === 0) await idle();
      const stages = await stagesOf(picker).catch(() => []);
      picker.code = stages.map(({ lines }) => lines.join("\n")).join("\n");
    }
    if (pickers.length) document.dispatchEvent(new Event("compilescope:code"));
  }, { once: true });

  /* Pointer and keys. */
  const lineAt = (event) => event.target.closest && event.target.closest(".pane [data-k]");
  document.addEventListener("mouseover", (event) => { const line = lineAt(event); if (line) light(line, false); });
  document.addEventListener("click", (event) => { const line = lineAt(event); if (line) light(line, true); });
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const box = step && event.target.closest && event.target.closest(".pane pre");
    if (!box) return;
    event.preventDefault();
    const lines = all("[data-k]:not([hidden])", box);
    const now = lines.findIndex((line) => line.classList.contains("current"));
    const next = lines[Math.min(Math.max(now + step, 0), lines.length - 1)];
    if (!next) return;
    if (now >= 0) lines[now].classList.remove("current");
    next.classList.add("current");
    next.scrollIntoView({ block: "nearest" });
    light(next, true);
  });
})();
