/* A run while it happens: entries as they come, totals, elapsed time. */
(() => {
  const root = document.querySelector(".live-run");
  if (!root) return;
  const MOST = 200, SPEAK_MS = 10000;
  const part = (name) => root.querySelector(`[data-live="${name}"]`);
  const [feed, rest, fresh, empty, notice, summary] = ["feed", "rest", "new", "empty", "notice", "summary"].map(part);
  const chips = [...root.querySelectorAll(".live-kinds .chip")];
  const pause = part("pause");
  const off = new Set();
  const number = new Intl.NumberFormat("en-US");

  let held = [];            // Updates that wait until the reader wants them.
  let paused = false, over = false;
  let counts = {};
  let startedAt = performance.now() - Math.max(0, Date.now() - Number(root.dataset.started));
  let stopAskedAt = null;

  part("tools").hidden = false;

  /* --- Time --- */
  function clock(ms) {
    const seconds = Math.floor(ms / 1000);
    const two = (value) => String(value).padStart(2, "0");
    const hours = Math.floor(seconds / 3600);
    return `${hours ? `${hours}:` : ""}${hours ? two(Math.floor(seconds / 60) % 60) : Math.floor(seconds / 60)}:${two(seconds % 60)}`;
  }
  function tick() {
    if (over) return;
    part("elapsed").textContent = clock(performance.now() - startedAt);
    const kill = part("kill")?.querySelector("button");
    if (kill && stopAskedAt !== null) kill.hidden = performance.now() - stopAskedAt < 1000 * root.dataset.killAfter;
  }
  tick();
  const ticking = setInterval(tick, 500);

  /* --- What is said to who listens: seldom, and only what changed --- */
  let spoken = "", waiting = "", speaker = 0;
  function say(text) {
    waiting = text;
    if (speaker || text === spoken) return;
    speaker = setTimeout(() => { speaker = 0; if (waiting !== spoken) summary.textContent = spoken = waiting; }, SPEAK_MS);
  }
  function tell(words, kind = "") {
    notice.textContent = words;
    notice.className = `notice ${kind}`;
    notice.hidden = !words;
  }

  /* --- The list --- */
  function made(entry) {
    const [key, kind, html] = entry;
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const item = holder.content.firstElementChild;
    item.dataset.key = key;
    item.dataset.kind = kind;
    item.hidden = off.has(kind);
    return item;
  }
  function gap(skipped) {
    const left = Object.values(skipped).reduce((sum, each) => sum + each, 0);
    if (!left) return null;
    const line = document.createElement("p");
    line.className = "live-gap";
    line.dataset.skipped = left;
    line.textContent = `… and ${number.format(left)} more at the same time`;
    return line;
  }
  function put(update, isNew) {
    const known = new Set([...feed.children].map((item) => item.dataset.key));
    const items = update.entries.filter(([key]) => !known.has(key)).map(made);
    if (isNew) items.forEach((item) => item.classList.add("fresh"));
    const line = gap(update.skipped);
    feed.prepend(...items.reverse(), ...(line ? [line] : []));
  }
  function trim() {
    while (feed.childElementCount > MOST) feed.lastElementChild.remove();
    const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
    const told = [...feed.children].reduce((sum, item) => sum + Number(item.dataset.skipped || 1), 0)
      + held.reduce((sum, update) => sum + weight(update), 0);
    rest.hidden = all <= told;
    rest.textContent = `and ${number.format(all - told)} earlier; the report has all of them`;
    empty.hidden = all > 0;
  }
  const weight = (update) => update.entries.length + Object.values(update.skipped).reduce((sum, each) => sum + each, 0);

  /* New entries come in at the top: not while the reader is further down. */
  const reading = () => paused || feed.getBoundingClientRect().top < 0;
  function offer() {
    const waitingCount = held.reduce((sum, update) => sum + weight(update), 0);
    fresh.hidden = !waitingCount;
    fresh.textContent = `Show ${number.format(waitingCount)} new`;
  }
  function release() {
    for (const update of held) put(update, true);
    held = [];
    offer();
    trim();
  }
  function take(update) {
    stand(update);
    if (!weight(update)) return;
    if (reading()) {
      held.push(update);
      /* Of what waits for long only the newest is kept, the rest is counted. */
      while (held.length > 1 && held.reduce((sum, each) => sum + each.entries.length, 0) > MOST) {
        const oldest = held.shift();
        held[0].skipped.other = (held[0].skipped.other || 0) + weight(oldest);
      }
      offer();
    } else {
      put(update, true);
    }
    trim();
  }
  /* Replaces all there is, without touching what stays: focus and scrolling are kept. */
  function replace(update) {
    stand(update);
    held = [];
    const keys = new Set(update.entries.map(([key]) => key));
    for (const item of [...feed.children]) if (!keys.has(item.dataset.key)) item.remove();
    put(update, false);
    offer();
    trim();
  }
  function stand(update) {
    startedAt = performance.now() - 1000 * update.elapsed;
    if (update.figures) part("figures").innerHTML = update.figures;
    if (update.summary) say(update.summary);
    counts = update.counts || counts;
    for (const chip of chips) {
      const found = counts[chip.dataset.kind] || 0;
      chip.hidden = !found;
      chip.querySelector("span").textContent = number.format(found);
    }
    if (update.stop_asked !== null && !over) {
      stopAskedAt = performance.now() - 1000 * update.stop_asked;
      const button = part("stop")?.querySelector("button");
      if (button) { button.disabled = true; button.textContent = "Stopping…"; }
    }
    tick();
  }
  function finish(update) {
    stand(update);
    over = true;
    clearInterval(ticking);
    following.stop();
    part("elapsed").textContent = clock(1000 * update.elapsed);
    const gone = update.state === "gone", good = update.state === "ended";
    const badge = part("state");
    badge.className = `badge ${good ? "" : "bad"}`;
    badge.textContent = gone ? "deleted" : good ? "ended" : "stopped";
    for (const name of ["stop", "kill", "sofar"]) part(name)?.remove();
    tell(`${update.words} `, good ? "" : "bad");
    const link = document.createElement("a");
    link.className = "button small primary";
    link.href = gone ? "/" : root.dataset.report;
    link.textContent = gone ? "All runs" : "Open the report";
    notice.append(link);
    clearTimeout(speaker);
    summary.textContent = `${update.words} ${update.summary || ""}`;
  }

  /* --- Controls --- */
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      const kind = chip.dataset.kind, shown = off.has(kind);
      if (shown) off.delete(kind); else off.add(kind);
      chip.setAttribute("aria-pressed", String(shown));
      for (const item of feed.children) if (item.dataset.kind) item.hidden = off.has(item.dataset.kind);
    });
  }
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Continue" : "Pause";
    if (!paused) release();
  });
  fresh.addEventListener("click", () => {
    release();
    feed.scrollIntoView({block: "nearest"});
  });
  addEventListener("scroll", () => { if (held.length && !reading()) release(); }, {passive: true});

  /* --- What the program prints, where a job of ours runs it --- */
  const output = part("output");
  if (output) {
    const print = compilescope.printer(output);
    const listening = compilescope.follow(output.dataset.events, {
      after: output.dataset.after,
      heard: {
        output(more) {
          if (more.skipped) print(`\n[${number.format(more.skipped)} bytes are not shown]\n`);
          print(more.text);
        },
        state(now) { if (now.over) listening.stop(); },
        gone() { listening.stop(); },
      },
    });
  }

  const following = window.compilescope.follow(root.dataset.events, {
    heard: {snapshot: replace, update: take, end: finish},
    told(state, words) {
      if (over) return;
      if (state === "open") { tell(""); return; }
      if (state === "over") { over = true; clearInterval(ticking); part("state").className = "badge"; part("state").textContent = "not followed"; }
      tell(words, state === "over" ? "bad" : "warn");
      summary.textContent = words;
    },
  });
})();
