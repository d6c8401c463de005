// For every page: closes menus, copies texts, protects edits from being lost, and does not refresh a
// part of the page in which something is open or being typed.
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

  // While the target of a periodic request is in use, do not send the request or show its answer.
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

  // What a part that was asked for says of itself is said aloud, and how its table is sorted now.
  const say = (text) => {
    const said = document.getElementById("said");
    if (said) said.textContent = text;
  };
  document.addEventListener("htmx:after:swap", (event) => {
    const { sourceElement, sourceEvent } = event.detail.ctx;
    if (sourceEvent?.type === "every" || sourceEvent?.type === "load") return;
    const head = sourceElement?.id && document.getElementById(sourceElement.id)?.closest("th[aria-sort]");
    if (head) {
      say(`Sorted by ${head.querySelector("a").textContent}, ${head.ariaSort}`);
      return;
    }
    const says = document.querySelector("main [data-says]");
    if (says) say(says.textContent);
  });

  // Of a periodic refresh only news are said: the state of a job, how many calls arrived. Each once, the last of
  // what happens within ten seconds.
  const NEWS_MS = 10000;
  const news = () => document.querySelector("main [data-news]")?.dataset.news ?? "";
  let known = news(), saidAt = 0, waiting = null;
  const sayNews = () => {
    waiting = null;
    saidAt = Date.now();
    say(known || "Done");
  };
  document.addEventListener("htmx:after:swap", (event) => {
    const now = news();
    if (now === known) return;
    known = now;
    if (event.detail.ctx.sourceEvent?.type !== "every") return;
    waiting ??= setTimeout(sayNews, Math.max(0, saidAt + NEWS_MS - Date.now()));
  });

  // A form that was not accepted begins with its first mistake, whose message describes the field.
  document.querySelector("main form[method=post] [aria-invalid=true]")?.focus();

  // In a navigation longer than the window, the current page's link is in sight.
  document.querySelector(".nav-links [aria-current]")?.scrollIntoView({ block: "nearest" });

  // A link with data-copy copies the text that it leads to.
  async function copy(link) {
    const label = link.textContent;
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.statusText);
      await navigator.clipboard.writeText(await answer.text());
      link.textContent = "Copied";
      setTimeout(() => (link.textContent = label), 2000);
    } catch {
      location.assign(link.href); // without HTTPS there is no clipboard: open it, to be copied by hand
    }
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-copy]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    copy(link);
  });

  // A link with data-copy-link copies the address that it leads to.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-copy-link]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !navigator.clipboard) return;
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(link.href);
    } catch {
      location.assign(link.href); // the browser refused: it is in the bar of addresses then
      return;
    }
    const label = link.textContent;
    link.textContent = "Copied";
    say("Link copied");
    setTimeout(() => (link.textContent = label), 2000);
  });

  // A button with data-copy-code copies the code before it, where the browser has a clipboard.
  if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copy-code]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const code = button.previousElementSibling;
        try {
          await navigator.clipboard.writeText(code.textContent);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(code); // the browser refused: to be copied by hand
          button.textContent = "Selected";
        }
        setTimeout(() => (button.textContent = "Copy"), 2000);
      });
    }
  }

  // Ask before leaving a form with data-keep-edits that has unsaved edits.
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
