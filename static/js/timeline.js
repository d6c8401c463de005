// The timeline by keyboard and mouse: walking, folding, zooming, copying. Without this file rows
// are plain links, everything is unfolded and the minimap's places lead to a closer look.
"use strict";

(() => {
  const items = () => [...document.querySelectorAll(".calls li[data-depth]")];
  const rows = () => items().filter((li) => !li.hidden).map((li) => li.querySelector("a"));
  const depth = (li) => Number(li.dataset.depth);
  const fold = (li) => li.querySelector(".fold-calls");

  // The row of the call the panel shows, which any link may have swapped, and its like.
  function select() {
    const call = document.querySelector("#call-panel")?.dataset.call;
    const selected = document.getElementById(`c-${call}`);
    for (const li of items()) {
      const content = selected?.dataset.content;
      li.classList.toggle("is-alike", content !== undefined && li.dataset.content === content);
      li.querySelector("a").toggleAttribute("aria-current", false);
    }
    if (!selected) return;
    for (const [above] of ancestors(selected)) set(above, true);
    selected.querySelector("a").setAttribute("aria-current", "true");
    selected.scrollIntoView({ block: "nearest" });
  }

  // ↑ ↓ walk the rows from the one in focus, else from the selected one; Enter opens a link anyway.
  function here() {
    return document.activeElement?.closest(".calls li") ??
      document.querySelector(".calls a[aria-current]")?.parentElement;
  }

  function walk(step) {
    const all = rows();
    const from = all.indexOf(here()?.querySelector("a"));
    all[Math.min(Math.max(from + step, 0), all.length - 1)]?.focus();
  }

  // ← folds what has calls inside, else goes to the call around; → unfolds, else goes inside.
  function across(step) {
    const li = here();
    if (!li) return;
    const isOpen = fold(li)?.getAttribute("aria-expanded") === "true";
    if (step < 0 && isOpen) set(li, false);
    else if (step < 0) ancestors(li)[0]?.[0].querySelector("a").focus();
    else if (fold(li) && !isOpen) set(li, true);
    else if (fold(li)) walk(1);
  }

  function ancestors(li) {
    const found = [];
    let level = depth(li);
    for (let at = li.previousElementSibling; at && level > 0; at = at.previousElementSibling) {
      if (depth(at) < level) found.push([at, (level = depth(at))]);
    }
    return found;
  }

  function set(li, isOpen) {
    fold(li)?.setAttribute("aria-expanded", String(isOpen));
    let hiddenBelow = Infinity;
    for (const each of items()) {
      each.hidden = depth(each) > hiddenBelow;
      if (each.hidden) continue;
      const isFolded = fold(each)?.getAttribute("aria-expanded") === "false";
      hiddenBelow = isFolded ? depth(each) : Infinity;
    }
  }

  function go(changes) {
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    location.assign(address);
  }

  // A stretch drawn on the minimap is what the timeline then shows.
  function zoomable(map) {
    const drawing = map.querySelector(".minimap-window");
    const share = (event) => {
      const box = map.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    };
    let from = null;
    let mark = null;
    map.addEventListener("pointerdown", (event) => {
      if (event.button === 0) from = share(event);
    });
    map.addEventListener("pointermove", (event) => {
      if (from === null || Math.abs(share(event) - from) < 0.01) return;
      mark ??= drawing.appendChild(
        document.createElementNS("http://www.w3.org/2000/svg", "rect"));
      mark.setAttribute("class", "dragged");
      mark.setAttribute("height", "100%");
      mark.setAttribute("x", `${Math.min(from, share(event)) * 100}%`);
      mark.setAttribute("width", `${Math.abs(share(event) - from) * 100}%`);
      if (!map.hasPointerCapture(event.pointerId)) map.setPointerCapture(event.pointerId);
    });
    map.addEventListener("pointerup", (event) => {
      if (from !== null && mark) {
        const span = Number(map.dataset.spanUs);
        const ends = [from, share(event)].sort((one, two) => one - two);
        go({
          zoom_from: Math.floor(ends[0] * span),
          zoom_to: Math.ceil(ends[1] * span),
          row: null,
        });
      }
      from = mark = null;
    });
    map.addEventListener("pointercancel", () => {
      mark?.remove();
      from = mark = null;
    });
    map.addEventListener("dragstart", (event) => event.preventDefault());
  }

  async function copy(link) {
    const label = link.textContent;
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.statusText);
      await navigator.clipboard.writeText(await answer.text());
      link.textContent = "Copied";
      setTimeout(() => (link.textContent = label), 2000);
    } catch {
      location.assign(link.href); // no clipboard without HTTPS: shown, to be copied by hand
    }
  }

  function begin() {
    for (const button of document.querySelectorAll(".fold-calls")) button.hidden = false;
    document.querySelectorAll(".minimap-map").forEach(zoomable);
    document.querySelector(".timeline-find select")?.addEventListener("change", (event) =>
      event.target.form.requestSubmit());
    document.querySelector("a[data-copy]")?.addEventListener("click", (event) => {
      event.preventDefault();
      copy(event.currentTarget);
    });
    document.addEventListener("click", (event) => {
      const button = event.target.closest(".fold-calls");
      if (button) set(button.parentElement, button.getAttribute("aria-expanded") === "false");
    });
  }

  const keys = {
    ArrowDown: () => walk(1),
    ArrowUp: () => walk(-1),
    ArrowLeft: () => across(-1),
    ArrowRight: () => across(1),
    "/": () => document.querySelector(".timeline-find input[type=search]")?.focus(),
    Escape: () => {
      const asked = new URLSearchParams(location.search);
      const shown = ["zoom_from", "zoom_to", "find", "tool", "only", "row"];
      if (shown.some((name) => asked.has(name))) {
        go(Object.fromEntries(shown.map((name) => [name, null])));
      }
    },
  };

  document.addEventListener("htmx:after:swap", select);

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input, textarea, select, pre, [contenteditable]")) {
      if (event.key === "Escape" && event.target.closest(".timeline-find")) {
        event.preventDefault(); // the browser would empty the field first
        event.target.blur();
        walk(0);
      }
      return;
    }
    if (keys[event.key] && document.querySelector(".calls")) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  begin(); // the script is deferred: the page is there
})();
