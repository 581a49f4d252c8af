"use strict";
/* A matrix can be sorted by any column: counts with the most first, names from A to Z. */
(() => {
  for (const table of document.querySelectorAll(".matrix table")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, at) => row.cells[at].textContent.trim();
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent.trim();
      button.title = [head.title, "Sort by this column"].filter(Boolean).join("\n");
      head.removeAttribute("title");
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const by = at
          ? (one, other) => Number(value(other, at)) - Number(value(one, at))
          : (one, other) => value(one, 0).localeCompare(value(other, 0));
        body.append(...[...body.rows].sort(by));
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", at ? "descending" : "ascending");
      });
    });
  }
})();
