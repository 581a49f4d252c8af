"use strict";
/* A job while it runs: its output, its state, its runs. And the list of jobs. */
(() => {
  const box = document.querySelector("[data-job]");
  if (!box) return;
  const part = (name) => box.querySelector(`[data-${name}]`);
  const output = document.getElementById("output");
  const append = compilescope.printer(output, () => {
    part("before").hidden = false;
    part("before").firstChild.data = "The beginning is not shown here. ";
  });
  function print(more) {
    append(more);
    part("silent").hidden = output.textContent.length > 0;
  }

  const started = box.dataset.seconds === "" ? null : Number(box.dataset.seconds);
  let base = started, at = performance.now(), ticking = 0;
  function elapsed() {
    if (base === null) return;
    const runs = box.dataset.state === "running" ? (performance.now() - at) / 1000 : 0;
    const seconds = base + runs, whole = Math.floor(seconds);
    const minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60);
    part("elapsed").textContent = hours ? `${hours} h ${minutes % 60} min`
      : minutes ? `${minutes} min ${whole % 60} s` : `${runs ? whole : seconds.toFixed(1)} s`;
  }

  function state(now) {
    /* The address leads on to the page of the run, as soon as there is one. */
    if ("live" in box.dataset && now.runs.length && !now.over) return void location.reload();
    box.dataset.state = now.state;
    part("label").textContent = now.label;
    part("label").className = `badge ${now.style}`;
    part("stop").hidden = !now.can_stop;
    part("kill").hidden = !now.can_kill;
    part("stopping").hidden = !now.stopping || Boolean(now.outcome);
    part("outcome").textContent = now.outcome;
    part("outcome").className = `notice ${now.style}`;
    part("outcome").hidden = !now.outcome;
    part("runs-box").hidden = !now.runs.length;
    part("runs").replaceChildren(...now.runs.map((run) => {
      const link = document.createElement("a"), item = document.createElement("li");
      link.href = `/runs/${encodeURIComponent(run)}`;
      link.textContent = run;
      item.append(link);
      return item;
    }));
    base = now.seconds;
    at = performance.now();
    elapsed();
    if (!now.over) return;
    clearInterval(ticking);
    following?.stop();
    part("silent").textContent = "It printed nothing.";
    /* Files that it wrote are listed by the server. */
    if (box.dataset.watched) fetch(location.href).then((answer) => answer.text()).then(files).catch(() => {});
  }

  function files(page) {
    const found = new DOMParser().parseFromString(page, "text/html").getElementById("files-title");
    if (found && !document.getElementById("files-title")) part("runs-box").after(found.parentElement);
  }

  let following = null;
  if (!["waiting", "running"].includes(box.dataset.state)) return;
  box.dataset.watched = "yes";
  ticking = setInterval(elapsed, 1000);
  following = compilescope.follow(box.dataset.events, {
    after: box.dataset.after,
    heard: {
      output(more) {
        if (more.skipped) print(`\n[${more.skipped.toLocaleString("en")} bytes are not shown]\n`);
        print(more.text);
      },
      state,
      gone(said) { part("outcome").textContent = said.words; part("outcome").hidden = false; following.stop(); },
    },
    told(how, words) {
      part("connection").textContent = words;
      part("connection").hidden = how === "open" || !words;
    },
  });
})();

(() => {
  const list = document.querySelector("[data-jobs]");
  if (!list) return;
  const EVERY_MS = 2000;
  async function refresh() {
    if (!list.hasAttribute("data-active")) return;
    try {
      const answer = await fetch(location.href);
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-jobs]");
      /* Not under somebody's fingers. */
      if (answer.ok && found && !list.contains(document.activeElement) && !document.hidden) {
        list.innerHTML = found.innerHTML;
        list.toggleAttribute("data-active", found.hasAttribute("data-active"));
      }
    } catch {
      /* The server is away: later, perhaps. */
    }
    setTimeout(refresh, EVERY_MS);
  }
  setTimeout(refresh, EVERY_MS);
})();
