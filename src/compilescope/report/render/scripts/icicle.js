"use strict";
/* The compile tree by time: a click on a function shows it alone, over the whole width. */
(() => {
  const LEAST_LABEL_PX = 30;
  const LEAST_CELL_PX = 0.4;

  function begin(figure) {
    const box = figure.querySelector(".wide");
    const area = figure.querySelector(".cells");
    const nodes = read(area);
    const of = new Map(nodes.map((node) => [node.cell, node]));
    let top = null;

    /* Cells come parents first, so a stack of those above finds each one's parent. */
    function read(root) {
      const path = [];
      return [...root.querySelectorAll(".cell")].map((cell) => {
        const [left, width, row] = ["left", "width", "top"].map((name) => parseFloat(cell.style[name]));
        while (path.length && path[path.length - 1].row >= row) path.pop();
        const node = { cell, left, width, row, parent: path[path.length - 1] || null, below: [] };
        if (node.parent) node.parent.below.push(node);
        path.push(node);
        return node;
      });
    }

    function isAbove(node, other) {
      for (let up = other && other.parent; up; up = up.parent) if (up === node) return true;
      return false;
    }

    function draw() {
      const [from, share] = top ? [top.left, top.width / 100] : [0, 1];
      const px = area.offsetWidth / 100;
      for (const node of nodes) {
        const { cell } = node;
        const above = isAbove(node, top);
        const inside = !top || node === top || isAbove(top, node);
        const width = above ? 100 : node.width / share;
        cell.hidden = !(above || (inside && width * px >= LEAST_CELL_PX));
        if (cell.hidden) continue;
        cell.style.left = above ? "0%" : `${(node.left - from) / share}%`;
        cell.style.width = `${width}%`;
        cell.classList.toggle("above", above);
        cell.classList.toggle("bare", width * px < LEAST_LABEL_PX);
      }
      for (const button of figure.querySelectorAll(".controls button")) button.disabled = !top;
      settle();
    }

    function zoom(node) {
      area.classList.add("moving");
      top = node;
      draw();
      rest();
    }

    for (const { cell, below } of nodes) {
      if (!below.length) continue;
      cell.setAttribute("role", "button");
      if (cell.matches("div")) cell.tabIndex = -1;
    }
    const act = (event) => {
      const cell = event.target.closest(".cell[role=button]");
      if (!cell || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const node = of.get(cell);
      zoom(node === top ? node.parent : node);
    };
    area.addEventListener("click", act);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") act(event);
      if (event.key === "Escape" && top) zoom(top.parent);
    });
    const acts = { up: () => top && zoom(top.parent), reset: () => zoom(null) };
    for (const button of figure.querySelectorAll(".controls button")) {
      button.addEventListener("click", acts[button.dataset.act]);
    }

    const settle = charts.rove(box, "a.cell, .cell[role=button]", (cell, key) => {
      const node = of.get(cell);
      const reached = (other) => !other.cell.hidden && other.cell.matches("a, [role]");
      if (key === "ArrowUp") return node.parent && node.parent.cell;
      if (key === "ArrowDown") return (node.below.find(reached) || {}).cell;
      const turn = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (!turn) return null;
      const row = nodes.filter((other) => other.row === node.row && reached(other));
      return (row[row.indexOf(node) + turn] || {}).cell;
    });
    /* A click zooms, so what a function leads to is a link of its own. */
    const link = (cell) => {
      if (!cell.matches("a[role=button]")) return "";
      const way = document.createElement("a");
      way.href = cell.getAttribute("href");
      way.textContent = "Go to cause";
      return way;
    };
    const rest = charts.readout(figure, ".cell", link, () => top && top.cell);
    addEventListener("resize", draw);
    draw();
  }

  for (const figure of document.querySelectorAll("figure.icicle")) {
    figure.querySelector(".controls").hidden = false;
    charts.whenNear(figure, begin);
  }
})();
