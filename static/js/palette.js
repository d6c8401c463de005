// The palette (Ctrl-K or /) and the list of shortcuts (?). Its entries are links that the server renders.
"use strict";

(() => {
  const palette = document.getElementById("palette");
  const keys = document.getElementById("keys");
  if (!palette) return; // a page without a tenant
  const field = palette.querySelector("input");
  const links = () => [...palette.querySelectorAll(".palette-entries a")];

  const open = () => {
    keys.close();
    if (!palette.open) palette.showModal();
    field.select();
    field.dispatchEvent(new Event("palette:open"));
  };

  document.querySelector("[data-palette]").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });

  for (const dialog of [palette, keys]) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // beside it
    });
  }

  palette.addEventListener("keydown", (event) => {
    const all = links();
    const at = all.indexOf(document.activeElement);
    if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (all[at - 1] ?? field).focus();
    else if (event.key === "Enter" && at < 0) all[0]?.click();
    else if (event.key === "Escape") palette.close(); // a field with a text would be cleared first
    else return;
    event.preventDefault();
  });
  // A key typed while an entry has the focus belongs to the text.
  palette.addEventListener("keydown", (event) => {
    if (event.target !== field && (event.key.length === 1 || event.key === "Backspace")) field.focus();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      open();
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select, pre, [contenteditable]")) return;
    if (event.key === "?") {
      event.preventDefault();
      keys.showModal();
    } else if (event.key === "/" && !document.querySelector(".timeline-find")) {
      event.preventDefault();
      open();
    }
  });
})();
