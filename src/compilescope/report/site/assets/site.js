// Search, filters and sorting of the home page; everything else reads without a script.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.body.dataset.root || "";

  // Every page but the home page has a small search that leads there.
  const jump = document.querySelector("form.jump");
  if (jump) {
    jump.hidden = false;
    jump.addEventListener("submit", (event) => {
      event.preventDefault();
      location.href = `${root}index.html#q=${encodeURIComponent(jump.elements.q.value)}`;
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const field = byId("find") || (jump && jump.elements.q);
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    }
  });
  if (!byId("index")) return;

  // ---- Words -------------------------------------------------------------------------------
  const index = JSON.parse(byId("index").textContent);
  const LOG_PREFIX = /^(?:\[rank\d+\]:)?\s*[VIWEC]\d{4} [\d:.]+ \d+ [^\]\n]*\] ?(?:\[[^\]\n]*\] ?)*/gm;
  const fold = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
  const isWord = (c) => c !== undefined && /[\p{L}\p{N}_]/u.test(c);

  // The literal pieces of a text; what stands between them is only known at run time.
  const pieces = (text) =>
    fold(text).split(/<[^<>]*>|\{[^{}]*\}/).map((piece) => piece.trim()).filter((piece) => /[a-z0-9]/.test(piece));

  // 1 where `word` stands by itself in `text`, less where it begins or is part of a longer word.
  function fit(word, text) {
    let best = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const before = isWord(text[at - 1]) && isWord(word[0]);
      const after = isWord(text[at + word.length]) && isWord(word[word.length - 1]);
      if (!before && !after) return 1;
      best = Math.max(best, before ? 0.3 : 0.6);
    }
    return best;
  }

  // Do the pieces stand in `text`, one after the other? Plain scans: no pattern can run away.
  function follows(parts, text) {
    let at = 0;
    for (const part of parts) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return parts.length > 0;
  }

  const categories = new Map(index.categories.map((category) => [category.id, category]));
  for (const category of index.categories) {
    category.text = fold([category.id, category.title, ...category.words, ...category.types].join(" \n "));
    category.phrases = category.types.filter((type) => type.includes(" ")).map(fold);
  }
  // A hint that many ids share tells them apart no better than none.
  const sharers = new Map();
  for (const entry of index.entries) {
    for (const text of new Set([...entry.explanations, ...entry.hints, ...entry.contexts])) {
      sharers.set(text, (sharers.get(text) || 0) + 1);
    }
  }
  for (const entry of index.entries) {
    const category = categories.get(entry.category);
    entry.number = String(Number(entry.id.slice(2)));
    entry.fields = [
      [12, fold(entry.types.join(" \n "))],
      [6, category ? category.text : ""],
      [7, fold((entry.example || []).join(" \n "))],
      [3, fold([...entry.explanations, ...entry.hints].join(" \n "))],
      [3, fold((entry.note || []).join(" \n "))],
      [1, fold(entry.contexts.join(" \n "))],
    ];
    entry.typePieces = entry.types.map(pieces);
    entry.sayings = [];
    for (const [weight, texts] of [[3, entry.explanations], [1.5, entry.hints], [1.5, entry.contexts]]) {
      for (const text of texts) {
        const parts = pieces(text);
        const size = parts.join("").length;
        if (size >= 12) entry.sayings.push([weight / sharers.get(text), parts, size]);
      }
    }
  }

  const ID = /(?:^|[^a-z0-9])gb0*(\d{1,6})(?![a-z0-9]|\.py\b)/g;

  const JOINING = new Set("a an and at by do does for from i in is it my of on or the to why with".split(" "));
  const partsOf = (word) => { const parts = word.split(/[^\p{L}\p{N}_]+/u).filter(Boolean); return parts.length > 1 || parts[0] !== word ? parts : []; };

  const WHILE = /while handling this graph break, another graph break occurred/i;
  const linesOf = (text) => new Set(text.split("\n").map((line) => fold(line.replace(/^[\w.]*(?:Unsupported|Error|Exception)\s*:\s*/, ""))));

  function question(text) {
    const plain = text.replace(LOG_PREFIX, "").slice(0, 20000);
    const folded = fold(plain);
    const ids = [...folded.matchAll(ID)].map((found) => found[1]);
    if (/^\d{1,6}$/.test(folded)) ids.push(String(Number(folded)));
    const split = folded.split(/[\s,;:"'“”‘’`<>{}|]+/).map((word) => word.replace(/^[.()[\]]+(?=.)|[.!?]+$/g, ""));
    let words = [...new Set(split.filter((word) => /[\p{L}\p{N}_]/u.test(word)))];
    // Words that only join others are left out where there are others.
    if (words.some((word) => !JOINING.has(word))) words = words.filter((word) => !JOINING.has(word));
    // A chain of causes begins with the root; the others are what happened while it was handled.
    const texts = plain.split(WHILE).map((part, at) => ({ folded: fold(part), lines: linesOf(part), weight: at ? 0.4 : 1 }));
    return { folded, texts, ids: [...new Set(ids.map((id) => String(Number(id))))], words: words.slice(0, 400).map((word) => ({ word, parts: partsOf(word) })), long: words.length > 7 || /\n\s*\S/.test(text.trim()) };
  }

  // How well a type, as PyTorch prints it in the first line of a message, fits what was pasted.
  function typeScore(entry, asked, long) {
    let best = 0;
    for (const parts of entry.typePieces) {
      const size = parts.join("").length;
      if (!follows(parts, asked.folded)) continue;
      const whole = [...asked.lines].some((line) => line.startsWith(parts[0]) && line.endsWith(parts[parts.length - 1]) && follows(parts, line) && (parts.length > 1 || line === parts[0]));
      // A short type is a word that any message may have: it counts as a line of its own only.
      if (whole) best = Math.max(best, 400 + 4 * size);
      else if (long && size >= 10) best = Math.max(best, 4 * size);
    }
    return best;
  }

  const sayingScore = (entry, asked) => entry.sayings.reduce((sum, [weight, parts, size]) => (follows(parts, asked.folded) ? sum + weight * Math.min(size, 120) : sum), 0);

  const messageScore = (entry, asked) => asked.texts.reduce((sum, text) => sum + text.weight * (typeScore(entry, text, asked.long) + sayingScore(entry, text)), 0);

  const plainScore = (entry, word) => entry.fields.reduce((best, [weight, text]) => Math.max(best, weight * fit(word, text)), 0);

  // `loss.item()` is met as it stands, or by its parts; those tell apart what it fits equally.
  function wordScore(entry, { word, parts }) {
    const whole = plainScore(entry, word);
    if (!parts.length) return whole;
    const each = parts.map((part) => plainScore(entry, part));
    const sum = each.reduce((total, score) => total + score, 0);
    if (whole > 0) return whole + 0.2 * sum;
    return each.every((score) => score > 0) ? 0.5 * (sum / each.length) : 0;
  }

  // More where one text has all the words: they mean the same thing there.
  function together(entry, asked) {
    if (asked.words.length < 2) return 0;
    const all = entry.fields.filter(([, text]) => asked.words.every(({ word }) => fit(word, text) >= 0.6));
    return all.reduce((best, [weight]) => Math.max(best, weight), 0);
  }

  // [entry, score], the best first; null where nothing was asked.
  function rank(text) {
    const asked = question(text);
    if (!asked.folded) return null;
    const rarity = new Map();
    const scored = index.entries.map((entry) => {
      const at = asked.ids.indexOf(entry.number);
      const named = at < 0 ? 0 : 2000 / (1 + at);
      const message = asked.folded.length >= 8 ? messageScore(entry, asked) : 0;
      const fits = asked.words.map((word) => wordScore(entry, word));
      fits.forEach((fitness, at) => { if (fitness > 0) rarity.set(at, (rarity.get(at) || 0) + 1); });
      return { entry, named, message, fits };
    });
    const total = index.entries.length;
    const results = [];
    for (const { entry, named, message, fits } of scored) {
      const all = fits.length > 0 && fits.every((fitness) => fitness > 0);
      let words = 0;
      if (asked.long) {
        // Rare words of a long text tell, common ones do not.
        fits.forEach((fitness, at) => { words += fitness * Math.max(0, Math.log(total / (rarity.get(at) || total)) - 1.5) * 0.12; });
      } else if (all) {
        words = fits.reduce((sum, fitness) => sum + fitness, 0) + together(entry, asked);
      }
      const score = named + message + words;
      if (score > 0) results.push([entry, score]);
    }
    let found = results;
    if (!asked.long && !results.length) found = partly(scored, rarity);
    const best = found.reduce((most, [, score]) => Math.max(most, score), 0);
    if (asked.long) found = found.filter(([, score]) => score >= best * 0.2);
    found.sort((a, b) => b[1] - a[1] || a[0].types.join().length - b[0].types.join().length || (a[0].id < b[0].id ? -1 : 1));
    return asked.long ? found.slice(0, 30) : found;
  }

  // No id has all the words: those that have most of them, and the rarest.
  function partly(scored, rarity) {
    const rare = (at) => Math.log(1 + index.entries.length / (rarity.get(at) || index.entries.length));
    const found = scored.map(({ entry, fits }) => [entry, fits.reduce((sum, fitness, at) => sum + fitness * rare(at), 0) * fits.filter((fitness) => fitness > 0).length]);
    const best = found.reduce((most, [, score]) => Math.max(most, score), 0);
    return found.filter(([, score]) => score > 0 && score >= best * 0.5).slice(0, 60);
  }

  // Categories that the text speaks of: reasons without an id, and symptoms in the user's words.
  function fitting(text) {
    const asked = question(text);
    if (!asked.folded) return [];
    return index.categories.map((category) => {
      let score = category.phrases.some((phrase) => asked.folded.includes(phrase)) ? 100 : 0;
      if (!asked.long && asked.words.length) {
        const fits = asked.words.map(({ word }) => fit(word, category.text));
        if (fits.every((fitness) => fitness >= 0.6)) score += fits.reduce((sum, fitness) => sum + fitness, 0) / fits.length;
      }
      return [category, score];
    }).filter(([, score]) => score > 0).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([category]) => category);
  }
  window.registrySearch = (text) => (rank(text) || []).map(([entry]) => entry.id);

  // ---- The page ----------------------------------------------------------------------------
  const find = byId("find");
  const chosen = { category: byId("category"), since: byId("since"), has: byId("has"), means: byId("means"), sort: byId("sort") };
  const list = byId("rows");
  const rows = new Map([...list.children].map((row) => [row.dataset.id, row]));
  const byNumber = (a, b) => a.length - b.length || (a < b ? -1 : 1);
  const met = (id) => (rows.get(id).dataset.met || "0 0").split(" ").map(Number);
  const oftenest = (a, b) => met(b)[0] - met(a)[0] || met(b)[1] - met(a)[1] || byNumber(a, b);
  // What is met most often first. A server may have put its own answer first.
  const order = [...rows.keys()].sort(oftenest);
  for (const row of rows.values()) row.hidden = false;
  const titles = new Map(index.entries.map((entry) => [entry.id, entry.types[0] || entry.id]));
  const AT_FIRST = 60;
  let everything = false;
  document.querySelector(".finder").hidden = false;
  byId("clear").hidden = false;

  const version = (text) => text.split(".").map(Number);
  function newer(a, b) {
    const [left, right] = [version(rows.get(a).dataset.since || "999"), version(rows.get(b).dataset.since || "999")];
    for (let i = 0; i < 3; i += 1) if ((left[i] || 0) !== (right[i] || 0)) return (right[i] || 0) - (left[i] || 0);
    return 0;
  }
  const by = (key) => (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
  const sorts = {
    met: () => 0,
    id: byNumber,
    type: by((id) => titles.get(id).toLowerCase()),
    category: by((id) => rows.get(id).dataset.category || "\uffff"),
    newest: newer,
  };

  function fitsFilters(row) {
    const { category, since, has, means } = chosen;
    if (category.value && (row.dataset.category || "none") !== category.value) return false;
    if (since.value && row.dataset.since !== since.value) return false;
    const marks = row.dataset.has.split(" ");
    return (!has.value || marks.includes(has.value)) && (!means.value || marks.includes(means.value));
  }

  function draw() {
    const ranked = rank(find.value);
    let ids = ranked ? ranked.map(([entry]) => entry.id) : order;
    ids = ids.filter((id) => fitsFilters(rows.get(id)));
    if (chosen.sort.value !== "best") {
      const place = new Map(order.map((id, at) => [id, at]));
      ids = [...ids].sort((a, b) => sorts[chosen.sort.value](a, b) || place.get(a) - place.get(b));
    }
    const shown = everything ? ids : ids.slice(0, AT_FIRST);
    list.replaceChildren(...shown.map((id) => rows.get(id)));
    byId("more").hidden = shown.length === ids.length;
    byId("more").textContent = `Show all ${ids.length}`;
    byId("found").value = ids.length === order.length ? `${order.length} graph breaks` : `${ids.length} of ${order.length}`;
    if (byId("counted")) byId("counted").hidden = Boolean(ranked) || !["best", "met"].includes(chosen.sort.value);
    suggest();
    remember();
  }

  function suggest() {
    const place = byId("suggestions");
    const found = fitting(find.value);
    place.firstElementChild.replaceChildren(...found.map((category) => {
      const [item, link] = [document.createElement("li"), document.createElement("a")];
      link.href = list.dataset.category.replace("*", category.id);
      link.textContent = category.title;
      item.append("Category: ", link, ` – ${category.words[0]}`);
      return item;
    }));
    place.hidden = found.length === 0;
  }

  // The address holds the question, so that it can be shared and the way back finds it again.
  function remember() {
    const state = new URLSearchParams();
    if (find.value.trim()) state.set("q", find.value.slice(0, 2000));
    for (const [name, field] of Object.entries(chosen)) {
      if (field.value && !(name === "sort" && field.value === "best")) state.set(name, field.value);
    }
    const hash = state.toString();
    if (hash !== location.hash.slice(1)) {
      history.replaceState(null, "", hash ? `#${hash}` : location.href.split(/[?#]/)[0]);
    }
  }

  function recall() {
    if (/^#gb\d+$/.test(location.hash)) return;
    const state = new URLSearchParams(location.hash.slice(1) || location.search);
    find.value = state.get("q") || "";
    for (const [name, field] of Object.entries(chosen)) {
      const wanted = state.get(name) || "";
      const known = [...field.options].some((option) => option.value === wanted);
      field.value = known && wanted ? wanted : field.options[0].value;
    }
    grow();
  }

  function grow() {
    if (CSS.supports("field-sizing", "content")) return;
    find.style.height = "auto";
    find.style.height = `${Math.min(find.scrollHeight + 4, 256)}px`;
  }

  let waiting = 0;
  find.addEventListener("input", () => {
    grow();
    everything = false;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 60);
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { find.value = ""; grow(); draw(); }
    if (event.key === "Enter" && !event.shiftKey && !find.value.includes("\n")) {
      event.preventDefault();
      clearTimeout(waiting);
      draw();
      const first = list.querySelector("a.name");
      if (first && find.value.trim()) location.href = first.href;
    }
  });
  for (const field of Object.values(chosen)) field.addEventListener("change", draw);
  // Where a server would answer too: a pasted message is too long for an address.
  find.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    draw();
  });
  byId("more").addEventListener("click", () => { everything = true; draw(); });
  byId("clear").addEventListener("click", () => {
    find.value = "";
    for (const field of Object.values(chosen)) field.value = field.options[0].value;
    everything = false;
    grow();
    draw();
    find.focus();
  });
  window.addEventListener("hashchange", () => { recall(); draw(); });
  recall();
  if (location.hash && /^#gb\d+$/.test(location.hash)) {
    everything = true;
    draw();
    document.querySelector(location.hash)?.scrollIntoView();
  } else {
    draw();
  }
  document.documentElement.dataset.ready = "yes";
})();
