// The timeline by keyboard, and its selected row. Without this file rows are plain links.
"use strict";

(() => {
  const rows = () => [...document.querySelectorAll(".calls li > a[hx-get]")];

  // The row of the call the panel shows; the panel may have been swapped by any link.
  function select() {
    const call = document.querySelector("#call-panel")?.dataset.call;
    for (const row of rows()) {
      if (row.parentElement.id === `c-${call}`) {
        row.setAttribute("aria-current", "true");
        row.scrollIntoView({ block: "nearest" });
      } else {
        row.removeAttribute("aria-current");
      }
    }
  }

  // ↑ ↓ walk the rows from the one in focus, else from the selected one; Enter opens a link anyway.
  function walk(step) {
    const all = rows();
    const here = all.indexOf(document.activeElement);
    const from = here >= 0 ? here : all.findIndex((row) => row.hasAttribute("aria-current"));
    all[Math.min(Math.max(from + step, 0), all.length - 1)]?.focus();
  }

  document.addEventListener("htmx:after:swap", select);

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input, textarea, select, pre, [contenteditable]")) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      walk(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "/") {
      event.preventDefault();
      document.querySelector(".timeline-find input")?.focus();
    }
  });
})();
