"use strict";
/* What every page of the dashboard can do: shortcuts, and copying a command line. */
(() => {
  const writing = (element) => Boolean(element && element.closest("input, textarea, select, [contenteditable]"));

  /* A letter after `g` must follow soon, or it was meant for something else. */
  const PATIENCE_MS = 1500;
  const dialog = document.getElementById("shortcuts");
  const opener = document.getElementById("shortcuts-open");
  const pages = new Map([...dialog.querySelectorAll("a[data-key]")].map((link) => [link.dataset.key, link]));
  let since = -Infinity;

  function search() {
    const found = [...document.querySelectorAll("[data-search], #find, main input[type=search]")];
    return found.find((element) => element.checkVisibility());
  }

  /* Not by the attribute `autofocus`, which a page that opens at a section complains of. */
  function show() {
    dialog.showModal();
    dialog.querySelector("button").focus();
  }

  function act(event) {
    const follows = event.timeStamp - since < PATIENCE_MS;
    since = -Infinity;
    const page = follows && pages.get(event.key);
    if (page) return page.click();
    if (event.key === "g") { since = event.timeStamp; return false; }
    if (event.key === "?") return show();
    const field = event.key === "/" && search();
    if (!field) return false;
    field.focus();
    return field.select();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
    if (writing(event.target) || document.querySelector("dialog[open]")) return;
    if (act(event) !== false) event.preventDefault();
  });
  /* In a narrow window the row of pages scrolls: the page that is shown is in sight. */
  const row = document.querySelector("nav.pages ul");
  const current = row.querySelector("[aria-current]");
  if (current) row.scrollLeft = current.offsetLeft - (row.clientWidth - current.offsetWidth) / 2;

  opener.hidden = false;
  opener.addEventListener("click", show);
  /* Tab stays inside: else it would leave for the browser's own bar after the last stop. */
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    const stops = [...dialog.querySelectorAll("a, button")];
    const edge = event.shiftKey ? stops[0] : stops[stops.length - 1];
    if (document.activeElement !== edge) return;
    event.preventDefault();
    stops[event.shiftKey ? stops.length - 1 : 0].focus();
  });
  /* A click beside the dialog closes it. */
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  /* Where the browser gives no clipboard the text is selected, to be copied by hand. */
  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText("value" in source ? source.value : source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = before; }, 2000);
  }
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.setAttribute("aria-live", "polite");
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) copy(button);
  });
})();
