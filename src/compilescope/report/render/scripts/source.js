"use strict";
/* A source file opens at its first loss, not at its imports; the marks beside its scroll bar lead to the others. */
(() => {
  function toFirstLoss(file) {
    const box = file.querySelector(".src");
    const first = box && box.querySelector(".lost");
    if (first && !box.scrollTop && first.offsetTop > box.clientHeight * 0.8) box.scrollTop = first.offsetTop - box.clientHeight / 3;
  }
  for (const file of document.querySelectorAll(".srcfile")) {
    if (file.open) toFirstLoss(file);
    for (const mark of file.querySelectorAll(".ruler [data-line]")) mark.addEventListener("click", () => { location.hash = mark.dataset.line; });
    file.addEventListener("toggle", () => { if (file.open) toFirstLoss(file); });
  }
})();
