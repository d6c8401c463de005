// What a reader does with a chart (js/charts.js draws it): read the values of a part in all charts of the page, open
// its calls, and choose parts as the range of the page, by mouse and by keyboard.
"use strict";

(() => {
  const spoken = (chart, n) => [
    chart.slots[n][1],
    ...chart.series.filter((one) => !chart.hidden.has(one.name) && !(chart.kind === "heat" && !one.values[n]))
      .map((one) => `${one.name} ${one.texts[n]}`),
    ...chart.marks.filter(([slot]) => slot === n).map(([, title]) => title),
  ].join(", ");

  // A click on a mark opens its calls; a click between marks opens all calls of that part.
  function open(figure, query, event) {
    let address = `${figure.dataset.calls}?${new URLSearchParams({ q: query.trim() })}`;
    if (figure.dataset.traces) {
      const [since, until, parameters = ""] = query.trim().split(" ");
      const times = { from: since.slice("since:".length), to: until.slice("until:".length) };
      address = `${figure.dataset.traces}?${new URLSearchParams(times)}&${parameters}`;
    }
    if (event?.ctrlKey || event?.metaKey) window.open(address, "_blank", "noopener");
    else location.assign(address);
  }

  // The parts from one to another become the range of the page. The browser's Back leads back.
  function zoom(figure, chart, first, last) {
    const [, from] = chart.slots[first][2].match(/since:(\S+)/), [, to] = chart.slots[last][2].match(/until:(\S+)/);
    const address = new URL(location.href);
    for (const name of ["range", "from", "to", "before", "after", "live"]) address.searchParams.delete(name);
    if (figure.dataset.zoom === "query") {
      address.searchParams.set("q", `${figure.dataset.zoomQuery ?? ""} since:${from} until:${to}`.trim());
    } else {
      address.searchParams.set("from", from);
      address.searchParams.set("to", to);
    }
    const source = figure.parentElement; // it has the page's target, and is no target of its own
    if (window.htmx && source.closest("[hx-target\\:inherited]")) window.htmx.ajax("GET", address.href, { source });
    else location.assign(address.href);
  }

  // Where a part is in the drawing: its middle, and half its width.
  function placeOf(instance, n) {
    const x = (at) => instance.convertToPixel({ xAxisIndex: 0 }, at);
    const count = instance.chart.slots.length;
    return [x(n), count > 1 ? (x(count - 1) - x(0)) / (count - 1) / 2 : instance.getWidth() / 2];
  }

  // What lies over the drawing.
  function overlay(place, name) {
    const there = place.querySelector(`.${name}`);
    if (there) return there;
    const made = place.appendChild(document.createElement("div"));
    made.className = name;
    return made;
  }

  // The line at one part, in all charts of the page that have the same parts.
  function cross(from, n) {
    const times = from.chart.is_time && JSON.stringify(from.chart.slots.map((slot) => slot[2]));
    for (const place of document.querySelectorAll(".chart-canvas")) {
      const instance = place.drawn;
      if (!instance) continue;
      const shared = times && instance.chart.is_time
        && (instance === from || JSON.stringify(instance.chart.slots.map((slot) => slot[2])) === times);
      const line = overlay(place, "chart-cross");
      line.hidden = n === null || !(shared || instance === from);
      if (!line.hidden) line.style.left = `${placeOf(instance, n)[0]}px`;
    }
  }

  // The parts that are being chosen, or null.
  function mark(place, instance, parts) {
    const box = overlay(place, "chart-range");
    box.hidden = parts === null;
    if (parts === null) return;
    const [first, last] = [Math.min(...parts), Math.max(...parts)];
    const [left, half] = placeOf(instance, first), [right] = placeOf(instance, last);
    const edge = instance.chart.kind === "lines" ? 0 : half;
    box.style.left = `${Math.max(left - half, placeOf(instance, 0)[0] - edge)}px`;
    const end = Math.min(right + half, placeOf(instance, instance.chart.slots.length - 1)[0] + edge);
    box.style.width = `${Math.max(2, end - parseFloat(box.style.left))}px`;
  }

  const canZoom = (figure, chart) => Boolean(figure.dataset.zoom) && chart.is_time;

  function dragToZoom(figure, place, instance) {
    let start = null, parts = null;
    const slotAt = (event) => {
      const n = instance.convertFromPixel({ xAxisIndex: 0 }, event.clientX - place.getBoundingClientRect().left);
      return Math.max(0, Math.min(instance.chart.slots.length - 1, Math.round(n)));
    };
    const stop = () => {
      start = parts = null;
      mark(place, instance, null);
    };
    place.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && canZoom(figure, instance.chart)) start = event;
    });
    place.addEventListener("pointermove", (event) => {
      if (!start || (!parts && Math.abs(event.clientX - start.clientX) < 6)) return;
      if (!parts) place.setPointerCapture(event.pointerId);
      parts = [slotAt(start), slotAt(event)];
      mark(place, instance, parts);
    });
    place.addEventListener("pointerup", () => {
      if (parts) zoom(figure, instance.chart, Math.min(...parts), Math.max(...parts));
      stop();
    });
    place.addEventListener("pointercancel", stop);
    document.addEventListener("keydown", (event) => event.key === "Escape" && start && stop());
  }

  // By keyboard a chart is a slider over its parts, whose values a screen reader reads. With Shift parts are
  // chosen, Enter zooms to them, or opens the calls of one.
  function walkByKeyboard(figure, place, instance) {
    let at = null, anchor = null;
    const show = () => {
      const { chart } = instance;
      place.setAttribute("aria-valuenow", at);
      place.setAttribute("aria-valuetext", spoken(chart, at) + (anchor === null ? "" : `, ${Math.abs(at - anchor) + 1} chosen`));
      cross(instance, at);
      mark(place, instance, anchor === null ? null : [anchor, at]);
      instance.dispatchAction({ type: "showTip", x: placeOf(instance, at)[0], y: instance.getHeight() / 2 });
    };
    const leave = () => {
      anchor = null;
      mark(place, instance, null);
      cross(instance, null);
      instance.dispatchAction({ type: "hideTip" });
    };
    place.addEventListener("keydown", (event) => {
      const { chart } = instance, last = chart.slots.length - 1, now = at === null ? last : Math.min(at, last);
      const to = {
        ArrowLeft: now - 1, ArrowRight: now + 1, PageDown: now - 10, PageUp: now + 10, Home: 0, End: last,
      }[event.key];
      if (to !== undefined) {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        anchor = event.shiftKey && canZoom(figure, chart) ? anchor ?? now : null;
        at = at === null && to < last && to === now - 1 && !event.shiftKey ? last : Math.max(0, Math.min(last, to));
        show();
      } else if (event.key === "Enter" && at !== null) {
        if (anchor === null) open(figure, `${chart.slots[now][2]} ${chart.query}`, event);
        else zoom(figure, chart, Math.min(anchor, now), Math.max(anchor, now));
      } else if (event.key === "Escape") {
        if (anchor === null) return;
        anchor = null;
        show();
      } else return;
      event.preventDefault();
    });
    place.addEventListener("blur", leave);
  }

  // For a screen reader the chart is a slider over its parts.
  function describe(figure, place, instance) {
    const { chart } = instance, last = chart.slots.length - 1;
    place.classList.toggle("is-zoomable", canZoom(figure, chart));
    for (const [name, value] of Object.entries({ role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": last })) {
      place.setAttribute(name, value);
    }
    if (place.hasAttribute("aria-valuenow")) return;
    place.setAttribute("aria-valuenow", last);
    place.setAttribute("aria-valuetext", spoken(chart, last));
  }

  document.addEventListener("chart:made", ({ target: place, detail: instance }) => {
    const figure = place.closest("figure.chart");
    const zr = instance.getZr();
    const partAt = (event) => {
      if (!instance.containPixel("grid", [event.offsetX, event.offsetY])) return null;
      return instance.convertFromPixel({ xAxisIndex: 0 }, event.offsetX);
    };
    instance.on("click", ({ dataIndex, seriesId, value, event }) => {
      const { slots, series: all, kind } = instance.chart;
      const [slot, one] = kind === "heat" ? [slots[value[0]], all[value[1]]] : [slots[dataIndex], all[parseInt(seriesId, 10)]];
      open(figure, `${slot[2]} ${one.query}`, event?.event);
    });
    zr.on("click", (event) => {
      const n = event.target ? null : partAt(event);
      if (n !== null && instance.chart.kind !== "heat") open(figure, `${instance.chart.slots[n][2]} ${instance.chart.query}`, event.event);
    });
    zr.on("mousemove", (event) => {
      const n = partAt(event);
      cross(instance, n);
      if (!event.target) zr.setCursorStyle(n !== null && instance.chart.kind !== "heat" ? "pointer" : "default");
    });
    zr.on("globalout", () => cross(instance, null));
    dragToZoom(figure, place, instance);
    walkByKeyboard(figure, place, instance);
    describe(figure, place, instance);
  });
  document.addEventListener("chart:drawn", ({ target: place, detail: instance }) => {
    describe(place.closest("figure.chart"), place, instance);
  });
})();
