"use strict";
/* A form shows the command line it stands for while somebody types. */
(() => {
  const form = document.querySelector("form[data-preview]");
  if (!form) return;
  const WAIT_MS = 200;
  const line = document.getElementById("command-line");
  const typed = new Set();
  let timer = 0, asked = 0;

  function given() {
    const values = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string" && value.trim()) values.append(name, value);
    }
    return values;
  }

  /* Only what somebody has typed in can be wrong already; what is right again is said at once. */
  function mark(errors) {
    for (const box of form.querySelectorAll("[data-field]")) {
      const name = box.dataset.field;
      const place = box.querySelector("[data-error]");
      const wrong = errors[name] && (typed.has(name) || place.textContent) ? errors[name] : "";
      place.textContent = wrong;
      const control = box.matches("[role=group]") ? box : box.querySelector("input, select");
      if (wrong) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }

  async function update() {
    const number = ++asked;
    try {
      const answer = await fetch(`${form.dataset.preview}?${given()}`, {headers: {accept: "application/json"}});
      const said = await answer.json();
      if (number !== asked) return;
      if (answer.ok) { line.textContent = said.line; mark(said.errors); }
      line.parentElement.classList.toggle("stale", !answer.ok);
    } catch {
      if (number === asked) line.parentElement.classList.add("stale");
    }
  }

  function changed(event) {
    if (event.target.name) typed.add(event.target.name);
    line.parentElement.classList.add("stale");
    clearTimeout(timer);
    timer = setTimeout(update, event.type === "change" ? 0 : WAIT_MS);
  }
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  /* Two clicks are not two jobs. */
  form.addEventListener("submit", (event) => {
    if (event.submitter?.name === "_field") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  /* Back from the job: the form can be sent again, and shows what it stands for. */
  addEventListener("pageshow", (event) => {
    delete form.dataset.sent;
    if (event.persisted) update();
  });
  const wrong = form.querySelector("[aria-invalid=true]");
  if (wrong) (wrong.matches("[role=group]") ? wrong.querySelector("input") : wrong)?.focus();
  /* A browser may have kept what was typed before a reload. */
  update();
})();
