"use strict";
/* The timeline: round ticks, zoom by wheel, buttons and keys, dragging, and short bars on demand. */
(() => {
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
  const LEAST_LABEL_PX = 30;
  const LEAST_BAR_PX = 0.5;
  const MOST_SHORT_BARS = 800;
  const TICK_PX = 90;

  function roundStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= least * (1 - 1e-9));
  }

  function begin(figure) {
    const box = figure.querySelector(".wide");
    const track = figure.querySelector(".track");
    const ticks = figure.querySelector(".ticks");
    const whole = Number(track.dataset.ns);
    const held = [...figure.querySelectorAll(".bar")].map((bar) => ({ bar, ...placeOf(bar.style.cssText) }));
    const lanes = [...figure.querySelectorAll(".bars[data-rest]")].map((lane) => ({
      lane, rest: JSON.parse(lane.dataset.rest).map((row) => ({ row, ...placeOf(row[1]) })),
    }));
    let made = [];
    let scale = 1;
    let drawn = { width: 0, from: 0, to: 0 };
    let waiting = 0;

    function placeOf(style) {
      const number = (name) => Number((new RegExp(`${name}: ?([\\d.e-]+)%`).exec(style) || [0, 0])[1]) / 100;
      return { left: number("left"), width: number("width") };
    }

    function drawTicks(width, from, to) {
      const step = roundStep(whole * TICK_PX / width);
      const [unit, name] = UNITS.find(([size]) => whole >= size) || UNITS[2];
      const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
      const found = [];
      const last = Math.min(to, 1) * whole + 1e-6;
      for (let n = Math.floor(Math.max(from, 0) * whole / step); n * step <= last; n++) {
        const tick = document.createElement("span");
        tick.style.left = `${100 * n * step / whole}%`;
        tick.textContent = n ? `${(n * step / unit).toFixed(digits)} ${name}` : "0";
        found.push(tick);
      }
      ticks.replaceChildren(...found);
    }

    function make([kind, style, about, label, target], lane) {
      const bar = document.createElement(target ? "a" : "div");
      if (target) { bar.href = `#${lane.dataset.prefix}${target}`; bar.tabIndex = -1; bar.draggable = false; }
      bar.className = `bar ${kind}`;
      bar.style.cssText = style;
      bar.title = about;
      const name = document.createElement("span");
      name.textContent = label;
      bar.append(name);
      lane.append(bar);
      return bar;
    }

    /* The short bars that can be seen now, beside those that are always there. */
    function fill(width, from, to) {
      const focused = made.some(({ bar }) => bar === document.activeElement);
      if (focused) box.focus({ preventScroll: true });
      for (const { bar } of made) bar.remove();
      const seen = lanes.flatMap(({ lane, rest }) => rest
        .filter((one) => one.left <= to && one.left + one.width >= from
          && (one.width ? one.width * width >= LEAST_BAR_PX : scale >= 2))
        .map((one) => ({ ...one, lane })));
      if (seen.length > MOST_SHORT_BARS) {
        seen.sort((one, other) => other.width - one.width);
        seen.length = MOST_SHORT_BARS;
      }
      made = seen.map((one) => ({ ...one, bar: make(one.row, one.lane) }));
      for (const { bar, width: share } of [...held, ...made]) bar.classList.toggle("bare", share * width < LEAST_LABEL_PX);
      settle();
    }

    function draw() {
      waiting = 0;
      const width = track.offsetWidth;
      const view = box.clientWidth / width;
      const from = box.scrollLeft / width;
      drawTicks(width, from - view, from + 2 * view);
      if (width === drawn.width && from >= drawn.from && from + view <= drawn.to) return;
      drawn = { width, from: from - view, to: from + 2 * view };
      fill(width, drawn.from, drawn.to);
    }

    const soon = () => { if (!waiting) waiting = requestAnimationFrame(draw); };

    /* The moment under `at`, in pixels from the left of the box, stays where it is. */
    function zoom(factor, at = box.clientWidth / 2) {
      const most = Math.max(1, Math.min(4e6 / box.clientWidth, whole / 2e4));
      const wanted = Math.min(Math.max(scale * factor, 1), most);
      if (wanted === scale) return false;
      const fixed = (box.scrollLeft + at) / track.offsetWidth;
      scale = wanted;
      track.style.width = `${100 * scale}%`;
      box.scrollLeft = fixed * track.offsetWidth - at;
      soon();
      return true;
    }

    const acts = {
      in: () => zoom(2),
      out: () => zoom(0.5),
      reset: () => { zoom(1 / scale); box.scrollLeft = 0; soon(); },
    };
    for (const button of figure.querySelectorAll(".controls button")) {
      button.addEventListener("click", acts[button.dataset.act]);
    }

    /* The page scrolls as ever until the chart was clicked or Ctrl is held, and again once it was left. */
    let meant = false;
    for (const name of ["pointerdown", "focusin"]) box.addEventListener(name, () => { meant = true; });
    box.addEventListener("pointerleave", () => { meant = false; });
    box.addEventListener("wheel", (event) => {
      if (!(meant || event.ctrlKey || event.metaKey) || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1;
      const turned = Math.min(Math.max(event.deltaY * lines, -250), 250);
      const done = zoom(Math.exp(-turned / 250), event.clientX - box.getBoundingClientRect().left);
      if (done || event.ctrlKey || event.metaKey) event.preventDefault();
    }, { passive: false });

    let grip = null;
    let dragged = false;
    box.addEventListener("pointerdown", (event) => {
      dragged = false;
      if (event.button === 0 && event.pointerType === "mouse") grip = { x: event.clientX, left: box.scrollLeft };
    });
    box.addEventListener("pointermove", (event) => {
      if (!grip || Math.abs(event.clientX - grip.x) + (dragged ? 9 : 0) < 5) return;
      if (!dragged) box.setPointerCapture(event.pointerId);
      dragged = true;
      box.classList.add("dragged");
      box.scrollLeft = grip.left + grip.x - event.clientX;
    });
    for (const name of ["pointerup", "pointercancel"]) {
      box.addEventListener(name, () => { grip = null; box.classList.remove("dragged"); });
    }
    box.addEventListener("dragstart", (event) => event.preventDefault());
    box.addEventListener("click", (event) => {
      if (!dragged) return;
      event.preventDefault();
      event.stopPropagation();
    }, true);
    box.addEventListener("dblclick", acts.reset);

    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const pan = (part) => { box.scrollLeft += part * box.clientWidth; };
      const keys = {
        "+": acts.in, "=": acts.in, "-": acts.out, "0": acts.reset,
        ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    box.addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);

    /* From a bar the arrows lead to the next one that is a link. */
    const settle = charts.rove(box, "a.bar", (bar, key) => {
      const turn = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (!turn) return null;
      const links = [...held, ...made].filter((one) => one.bar.matches("a")).sort((one, other) => one.left - other.left || other.width - one.width);
      const other = links[links.findIndex((one) => one.bar === bar) + turn];
      return other && other.bar;
    });
    charts.readout(figure, ".bar");
    draw();
  }

  for (const figure of document.querySelectorAll("figure.timeline")) {
    figure.querySelector(".controls").hidden = false;
    charts.whenNear(figure, begin);
  }
})();
