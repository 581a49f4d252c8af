/* The list of runs: filters act at once, runs are chosen, what changes is drawn again. */
(() => {
  const table = document.querySelector("table.runs");
  const filter = document.getElementById("runs-filter");
  if (filter) filter.addEventListener("change", (event) => { if (event.target.matches("select")) filter.requestSubmit(); });
  /* What was not asked for need not stand in the address. */
  filter?.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });
  if (!table) return;

  const form = document.getElementById("runs-compare");
  const button = form.querySelector("button");
  const told = document.getElementById("runs-picked");
  const boxes = () => [...table.querySelectorAll("input[name=pick]")];
  function choose() {
    const picked = boxes().filter((box) => box.checked);
    const most = Number(told.dataset.most);
    button.disabled = picked.length < 2;
    button.classList.toggle("primary", picked.length > 1);
    for (const box of boxes()) box.disabled = picked.length >= most && !box.checked;
    told.textContent = picked.length > 1 ? `${picked.length} runs chosen.` : picked.length ? "Check one more run." : `Check two to ${most} runs to compare them.`;
  }
  table.addEventListener("change", choose);
  addEventListener("pageshow", choose);
  choose();

  const PAUSE_MS = 5000;
  const news = document.getElementById("runs-news");
  const progress = document.getElementById("runs-progress");
  const number = (value) => value.toLocaleString("en-US");
  const same = (row, data) => {
    const now = [data.status, data.breaks, data.recompiles, data.compile_seconds, data.step_seconds, data.peak_bytes, data.note, ...data.tags];
    return JSON.stringify(JSON.parse(row.dataset.marks)) === JSON.stringify(now);
  };
  const rowOf = (run) => document.getElementById(`run-${run}`);

  function announce(count) {
    if (!count || news.dataset.count === String(count)) return;
    news.dataset.count = count;
    const link = document.createElement("a");
    link.href = location.pathname + location.search;
    link.textContent = "Show";
    news.replaceChildren(`${number(count)} new ${count === 1 ? "run" : "runs"}. `, link);
    news.hidden = false;
  }

  /* Drawn by the server, so that nothing is drawn in two ways; a row that is in use stays. */
  async function redraw(runs) {
    const answer = await fetch(location.pathname + location.search, {headers: {accept: "text/html"}});
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const run of runs) {
      const [old, next] = [rowOf(run), page.getElementById(`run-${run}`)];
      if (!old || !next || old.contains(document.activeElement) || old.querySelector("input:checked")) continue;
      const made = document.importNode(next, true);
      old.replaceWith(made);
    }
    const [strip, drawn] = [document.getElementById("by-program"), page.getElementById("by-program")];
    if (strip && drawn && !strip.contains(document.activeElement)) strip.replaceWith(document.importNode(drawn, true));
    choose();
  }

  async function look() {
    const mark = table.dataset.query.includes("?") ? "&" : "?";
    const answer = await fetch(`${table.dataset.query}${mark}since=${table.dataset.newest}`, {headers: {accept: "application/json"}});
    if (!answer.ok) return;
    const data = await answer.json();
    announce(data.new);
    if (progress) progress.textContent = data.read < data.total ? `Reading ${number(data.read)} of ${number(data.total)} runs…` : "";
    const changed = data.runs.filter((each) => { const row = rowOf(each.run); return row && !same(row, each); });
    if (changed.length) await redraw(changed.map((each) => each.run));
  }

  async function watch() {
    for (;;) {
      await new Promise((go) => setTimeout(go, PAUSE_MS));
      if (document.hidden) continue;
      try { await look(); } catch { /* The server is away: perhaps it comes back. */ }
    }
  }
  watch();
})();
