// What every page does for the person at work on it: menus close, edits are not lost, and a page
// that refreshes itself leaves alone what is open or being written.
"use strict";

(() => {
  // Menus close on Escape and on a click outside.
  const openMenus = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of openMenus()) {
      const hadFocus = menu.contains(document.activeElement);
      menu.open = false;
      if (hadFocus) menu.querySelector("summary").focus();
    }
  });

  // A timed request is not sent, and its answer not shown, while its target is in use.
  const FIELDS = "input:not([type=hidden]), select, textarea";
  const isInUse = (target) => target.querySelector("details[open]") !== null
    || (target.contains(document.activeElement) && document.activeElement.matches(FIELDS));
  const hold = (event) => {
    const { sourceEvent, sourceElement, target } = event.detail.ctx;
    if (sourceEvent?.type !== "every") return;
    const element = typeof target === "string" ? document.querySelector(target) : target;
    if (isInUse(element ?? sourceElement)) event.preventDefault();
  };
  document.addEventListener("htmx:before:request", hold);
  document.addEventListener("htmx:before:swap", hold);
  const showHeld = () => {
    for (const live of document.querySelectorAll("#figures")) live.classList.toggle("is-held", isInUse(live));
  };
  for (const name of ["toggle", "focusin", "focusout"]) {
    document.addEventListener(name, () => setTimeout(showHeld), true);
  }

  // A form with data-keep-edits is not left with edits that are not saved, unless one says so.
  for (const form of document.querySelectorAll("form[data-keep-edits]")) {
    let isUnsaved = "unsaved" in form.dataset;
    form.addEventListener("input", () => { isUnsaved = true; });
    document.addEventListener("submit", (event) => {
      if (event.target === form || event.target.matches("[data-drop-edits]")) isUnsaved = false;
    });
    addEventListener("beforeunload", (event) => {
      if (isUnsaved) event.preventDefault();
    });
  }
})();
