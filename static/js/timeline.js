// The timeline by keyboard and mouse: move, fold, zoom, copy. Without this script rows are plain links,
// everything is unfolded, and the parts of the minimap are links that zoom.
"use strict";

(() => {
  // All rows. Rows that are not loaded yet are represented by one item for each window.
  const items = () => [...document.querySelectorAll(".calls li[data-depth]")];
  const shown = () => items().filter((li) => !li.hidden);
  const depth = (li) => Number(li.dataset.depth);
  const fold = (li) => li.querySelector(".fold-calls");
  const isUnloaded = (li) => li.classList.contains("rows-unloaded");
  const inPanel = () => document.getElementById(
    `c-${document.querySelector("#call-panel")?.dataset.call}`);

  // The panel has no scroll bar of its own: it stays when its top, or if it is longer than the window its end, is
  // reached.
  const EDGE = 14;
  const placePanel = () => {
    const panel = document.querySelector(".split > .panel");
    if (!panel) return;
    const top = Math.min(EDGE, document.documentElement.clientHeight - panel.offsetHeight - EDGE);
    panel.style.setProperty("--panel-top", `${top}px`);
  };
  const panelResized = new ResizeObserver(placePanel);
  const watchPanel = () => {
    panelResized.disconnect();
    for (const panel of document.querySelectorAll(".split > .panel")) panelResized.observe(panel);
  };
  addEventListener("resize", placePanel);
  document.addEventListener("htmx:after:swap", watchPanel);
  watchPanel();

  // Marks the row of the call that the panel shows, and the rows of identical calls.
  function mark() {
    const selected = inPanel();
    for (const li of items()) {
      const content = selected?.dataset.content;
      li.classList.toggle("is-alike", content !== undefined && li.dataset.content === content);
      li.querySelector("a").toggleAttribute("aria-current", false);
    }
    selected?.querySelector("a").setAttribute("aria-current", "true");
    return selected;
  }

  // Any link may have replaced the panel. The row of its call may not be loaded yet.
  async function select() {
    const panel = document.querySelector("#call-panel");
    if (!inPanel() && panel?.dataset.call && document.querySelector(".rows-unloaded")) {
      const address = new URL(location.href);
      address.searchParams.set("call", panel.dataset.call);
      address.searchParams.delete("row");
      const rows = await ask(address).catch(() => []);
      const first = rows.find((li) => !isUnloaded(li));
      if (!rows.some((li) => li.id === `c-${panel.dataset.call}`)) return; // excluded by a filter
      const place = document.querySelector(`.rows-unloaded[value="${first.value}"]`);
      if (!place) return location.reload(); // among earlier rows, not next to a loaded one
      put(place, rows);
    }
    const selected = mark();
    if (!selected) return;
    for (const above of ancestors(selected)) if (fold(above)) set(above, true);
    selected.scrollIntoView({ block: "nearest" });
  }

  async function ask(address) {
    const answer = await fetch(address, { headers: { "HX-Request": "true" } });
    if (answer.headers.has("HX-Redirect")) location.assign(answer.headers.get("HX-Redirect"));
    if (!answer.ok || answer.headers.has("HX-Redirect")) throw new Error(answer.statusText);
    const part = document.createElement("template");
    part.innerHTML = await answer.text();
    return [...part.content.children];
  }

  // Replaces the window `li` by its rows. Other windows in the answer are new only if `li` is that of
  // earlier rows; otherwise the list has them already.
  function put(li, rows) {
    if (!li.isConnected) return;
    const isEarlier = li.classList.contains("is-earlier");
    li.replaceWith(...rows.filter((row) => isEarlier || !isUnloaded(row)));
    for (const row of rows) {
      if (row.isConnected && window.htmx) htmx.process(row);
      if (fold(row)) fold(row).hidden = false;
    }
    refold();
    mark();
    watch();
  }

  // Each window is requested once; after a failure it can be requested again.
  const coming = new WeakMap();
  function load(li) {
    if (!coming.has(li)) {
      coming.set(li, ask(li.querySelector("a").href).then(
        (rows) => put(li, rows),
        () => coming.delete(li)));
    }
    return coming.get(li);
  }

  // Later rows are loaded when they are nearly visible. Until then their window keeps their height.
  const near = new IntersectionObserver((seen) => {
    for (const each of seen) if (each.isIntersecting) load(each.target);
  }, { rootMargin: "600px" });

  function watch() {
    near.disconnect();
    const windows = document.querySelectorAll(".rows-unloaded:not(.is-earlier)");
    if (!windows.length) return; // measuring a height costs 50 ms of layout before the first paint
    const height = document.querySelector(".calls li[id]")?.offsetHeight ?? 26;
    for (const li of windows) {
      li.style.height = `${li.dataset.count * height}px`;
      near.observe(li);
    }
  }

  // ↑ and ↓ move from the focused row, else from the selected one. Enter opens a link without a script.
  function here() {
    return document.activeElement?.closest(".calls li") ??
      document.querySelector(".calls a[aria-current]")?.parentElement;
  }

  async function walk(step) {
    const from = here();
    const beside = () => {
      const all = shown();
      return all[Math.min(Math.max(all.indexOf(from) + step, 0), all.length - 1)];
    };
    if (beside() && isUnloaded(beside())) await load(beside());
    beside()?.querySelector("a").focus();
  }

  // ← folds a call with calls inside, else moves to its parent. → unfolds it, else moves inside.
  async function across(step) {
    const li = here();
    if (!li) return;
    const isOpen = fold(li)?.getAttribute("aria-expanded") === "true";
    if (step < 0 && isOpen) set(li, false);
    else if (step < 0) {
      while (ancestors(li)[0] && isUnloaded(ancestors(li)[0])) {
        const place = ancestors(li)[0];
        await load(place);
        if (place.isConnected) return; // it could not be loaded
      }
      ancestors(li)[0]?.querySelector("a").focus();
    } else if (fold(li) && !isOpen) set(li, true);
    else if (fold(li)) walk(1);
  }

  // The parents, the nearest first. If one is not loaded, its window is in the list instead.
  function ancestors(li) {
    const parents = [];
    let level = depth(li);
    for (let at = li.previousElementSibling; at && level > 0; at = at.previousElementSibling) {
      if (depth(at) >= level) continue;
      parents.push(at);
      level = depth(at);
    }
    return parents;
  }

  function set(li, isOpen) {
    fold(li)?.setAttribute("aria-expanded", String(isOpen));
    refold();
  }

  // A window that is not loaded stays visible even if a fold reaches into it; its rows are folded later.
  function refold() {
    let hiddenBelow = Infinity;
    for (const each of items()) {
      each.hidden = depth(each) > hiddenBelow;
      if (each.hidden) continue;
      const isFolded = fold(each)?.getAttribute("aria-expanded") === "false";
      hiddenBelow = isFolded ? depth(each) : Infinity;
    }
    watch();
  }

  function go(changes) {
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    location.assign(address);
  }

  // Drawing a range on the minimap zooms the timeline to it.
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

  function begin() {
    for (const button of document.querySelectorAll(".fold-calls")) button.hidden = false;
    document.querySelectorAll(".minimap-map").forEach(zoomable);
    document.querySelector(".timeline-find select")?.addEventListener("change", (event) =>
      event.target.form.requestSubmit());
    document.addEventListener("click", (event) => {
      const button = event.target.closest(".fold-calls");
      if (button) set(button.parentElement, button.getAttribute("aria-expanded") === "false");
      const window = event.target.closest(".rows-unloaded");
      if (!window || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      load(window);
    });
    watch();
  }

  const keys = {
    ArrowDown: () => walk(1),
    ArrowUp: () => walk(-1),
    ArrowLeft: () => across(-1),
    ArrowRight: () => across(1),
    "/": () => document.querySelector(".timeline-find input[type=search]")?.focus(),
    Escape: () => {
      const parameters = new URLSearchParams(location.search);
      const shown = ["zoom_from", "zoom_to", "find", "tool", "only", "row"];
      if (shown.some((name) => parameters.has(name))) {
        go(Object.fromEntries(shown.map((name) => [name, null])));
      }
    },
  };

  document.addEventListener("htmx:after:swap", select);

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input, textarea, select, pre, [contenteditable]")) {
      if (event.key === "Escape" && event.target.closest(".timeline-find")) {
        event.preventDefault(); // the browser would clear the field first
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

  begin(); // the script is deferred, so the page is complete
})();
