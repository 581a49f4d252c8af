"use strict";
/* A matrix can be sorted by any column: counts with the most first, names from A to Z. */
(() => {
  for (const table of document.querySelectorAll(".matrix table")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, at) => row.cells[at].textContent.trim();
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      const link = head.querySelector("a");
      const name = head.textContent.trim();
      button.type = "button";
      button.textContent = link ? "\u2193" : name;
      button.title = [head.title, "Sort by this column"].filter(Boolean).join("\n");
      if (link) {
        button.setAttribute("aria-label", `Sort by ${name}`);
        link.title = head.title;
        head.append(button);
      } else {
        head.replaceChildren(button);
      }
      head.removeAttribute("title");
      button.addEventListener("click", () => {
        const by = at
          ? (one, other) => Number(value(other, at)) - Number(value(one, at))
          : (one, other) => value(one, 0).localeCompare(value(other, 0));
        body.append(...[...body.rows].sort(by));
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", at ? "descending" : "ascending");
      });
    });

    /* A matrix that leads somewhere has hundreds of links: one stop of the Tab key, and the arrows
       go from cell to cell. */
    const links = [...table.querySelectorAll("a")];
    if (!links.length) continue;
    const first = body.querySelector("a") || links[0];
    for (const link of links) link.tabIndex = link === first ? 0 : -1;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    table.addEventListener("keydown", (event) => {
      const step = steps[event.key];
      const cell = step && event.target.closest("a") && event.target.closest("th, td");
      if (!cell) return;
      event.preventDefault();
      const [down, right] = step;
      let [row, column] = [cell.parentElement.rowIndex, cell.cellIndex];
      while (table.rows[row += down]?.cells[column += right]) {
        const link = table.rows[row].cells[column].querySelector("a");
        if (link) { link.focus(); return; }
      }
    });
    table.addEventListener("focusin", (event) => {
      if (!links.includes(event.target)) return;
      for (const link of links) link.tabIndex = link === event.target ? 0 : -1;
    });
  }
})();
