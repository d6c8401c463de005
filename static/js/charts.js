// Draws the charts of a page from their JSON islands (audit/show/charts.py), and lets a reader zoom, compare
// and hide series, by mouse and by keyboard. While the tab is hidden, the page does not refresh. Without this
// script the tables with the charts' figures are open instead. Files of a chart: js/chart_files.js.
"use strict";

(() => {
  const drawn = new Map(); // element → ECharts instance
  const number = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
  const axis = {
    count: (value) => (Number.isInteger(value) ? number.format(value).replace(/[A-Z]$/, (unit) => ` ${unit.replace("K", "k")}`) : ""),
    money: (value) => (value < 1000 ? `${+value.toPrecision(3)}` : number.format(value)),
    share: (value) => `${+(value * 100).toPrecision(3)} %`,
    duration: (ms) =>
      ms < 1000 ? `${+ms.toPrecision(3)} ms`
        : ms < 60000 ? `${+(ms / 1000).toPrecision(3)} s`
          : ms < 3600000 ? `${+(ms / 60000).toPrecision(3)} min` : `${+(ms / 3600000).toPrecision(3)} h`,
  };
  // Steps of an axis of durations: a clock's, not 50 s or 1.67 min.
  const ofClock = [1, 2, 5, 10, 15, 30];
  const durationSteps = [
    ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500], ...ofClock.map((n) => n * 1000),
    ...ofClock.map((n) => n * 60000), ...[1, 2, 6, 12, 24, 48, 120, 240].map((n) => n * 3600000),
  ];
  const isForced = matchMedia("(forced-colors: active)");
  // With forced colours a browser may have replaced the theme, so that stacked bars need more than a colour.
  const decals = [
    undefined, { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -Math.PI / 4 },
    { symbol: "circle", symbolSize: 0.7, dashArrayX: 6, dashArrayY: 6 }, { symbol: "rect", dashArrayX: [4, 4], dashArrayY: [2, 4] },
  ];

  // The colours of the style sheet for this theme, painted once to get them as plain numbers:
  // ECharts understands neither light-dark() nor color-mix().
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pixel.canvas.width = pixel.canvas.height = 1;
  function colour(tone, alpha = 1) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.className = `tone-${tone}`;
    pixel.fillStyle = getComputedStyle(probe).color;
    probe.remove();
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pixel.getImageData(0, 0, 1, 1).data;
    return `rgba(${red},${green},${blue},${alpha})`;
  }

  // Which series a reader has hidden, for as long as the tab is open. It is a way to look, not a filter: the
  // address does not have it.
  const keyOf = (figure) => `hidden ${location.pathname} ${figure.id}`;
  function hiddenIn(figure) {
    try {
      return new Set(JSON.parse(sessionStorage.getItem(keyOf(figure)) ?? "[]"));
    } catch {
      return new Set();
    }
  }

  // Made of nodes, not of HTML: names of tools and versions must never become HTML.
  function tip(chart, n, only) {
    const box = document.createElement("div");
    const line = (text, className) => {
      const row = box.appendChild(document.createElement("div"));
      row.className = className;
      row.textContent = text;
      return row;
    };
    line(chart.slots[n][1], "tip-name");
    for (const one of only ? [only] : chart.series) {
      if (chart.hidden.has(one.name)) continue;
      const row = line("", `tip-value tone-${one.tone}`);
      row.appendChild(document.createElement("span")).textContent = one.name;
      row.appendChild(document.createElement("b")).textContent = one.texts[n];
    }
    for (const [slot, title, tone] of chart.marks) {
      if (slot === n) line("", `tip-value tone-${tone}`).appendChild(document.createElement("span")).textContent = title;
    }
    return box;
  }

  const spoken = (chart, n) => [
    chart.slots[n][1],
    ...chart.series.filter((one) => !chart.hidden.has(one.name) && !(chart.kind === "heat" && !one.values[n]))
      .map((one) => `${one.name} ${one.texts[n]}`),
    ...chart.marks.filter(([slot]) => slot === n).map(([, title]) => title),
  ].join(", ");

  const dashes = ["solid", [5, 3], [1.5, 2.5]];
  const isPartial = (chart, n) => chart.partial.includes(n);

  function heat(chart) {
    const top = Math.max(...chart.series.flatMap((one) => one.values.map((value) => value ?? 0)));
    const { tone } = chart.series[0];
    return {
      type: "heatmap",
      data: chart.series.flatMap((one, y) => one.values.flatMap((value, x) => value ? [{
        value: [x, y, value],
        itemStyle: { color: colour(tone, (0.12 + 0.88 * Math.sqrt(value / top)).toFixed(2)) },
      }] : [])),
      itemStyle: { borderWidth: 1, borderColor: colour("surface") },
      emphasis: { disabled: true },
    };
  }

  function bars(chart, one, n, isTop) {
    const decal = isForced.matches ? decals[n % decals.length] : undefined;
    const dimmed = { color: colour(one.tone, 0.4), decal };
    return {
      type: "bar", id: `${n}`, name: one.name, stack: "all", color: colour(one.tone),
      data: one.values.map((value, at) => isPartial(chart, at) ? { value, itemStyle: dimmed } : value),
      barCategoryGap: "18%", barMaxWidth: 34, barMinWidth: 1,
      itemStyle: { borderRadius: isTop ? [2, 2, 0, 0] : 0, decal },
      emphasis: { itemStyle: { color: colour(one.tone, 0.75) } },
    };
  }

  function lines(chart, one, n) {
    const line = {
      type: "line", id: `${n}`, name: one.name, data: one.values, color: colour(one.tone), connectNulls: false,
      symbol: "circle", symbolSize: 5, showSymbol: one.values.length < 3,
      showAllSymbol: false, lineStyle: { width: n ? 1.5 : 2, type: dashes[n % 3] },
      areaStyle: n === 0 && chart.series.filter((each) => !each.role).length === 1
        ? { color: colour(one.tone, 0.14) } : undefined,
      emphasis: { disabled: true },
    };
    if (!chart.partial.length) return [line];
    // To and from a step that the range contains only in part, the line is thin, dim and not clickable.
    const near = (at) => isPartial(chart, at - 1) || isPartial(chart, at) || isPartial(chart, at + 1);
    return [
      { ...line, data: one.values.map((value, at) => isPartial(chart, at) ? null : value) },
      {
        ...line, id: `${n} partial`, data: one.values.map((value, at) => near(at) ? value : null), silent: true,
        color: colour(one.tone, 0.45), areaStyle: undefined, lineStyle: { width: 1, type: [2, 3] },
      },
    ];
  }

  // The period before, or a threshold: a line that no calls are behind.
  const aside = (one, n) => ({
    type: "line", id: `${n} aside`, name: one.name, data: one.values, color: colour(one.tone, one.role === "before" ? 0.75 : 1),
    symbol: "none", silent: true, z: 1 + 3 * (one.role === "threshold"), emphasis: { disabled: true },
    lineStyle: one.role === "before" ? { width: 1.5, type: [3, 3] } : { width: 1.5, type: [9, 3] },
  });

  function series(chart) {
    if (chart.kind === "heat") return [heat(chart)];
    const shown = chart.series.flatMap((one, n) => chart.hidden.has(one.name) ? [] : [[one, n]]);
    const top = shown.findLast(([one]) => !one.role)?.[1];
    return shown.flatMap(([one, n]) => one.role ? [aside(one, n)]
      : chart.kind === "bars" ? [bars(chart, one, n, n === top)] : lines(chart, one, n));
  }

  // Where alerts fired and versions were published, along the top, on an axis of their own. Not clickable: the
  // calls below are.
  function marks(chart) {
    return ["triangle", "diamond"].flatMap((symbol) => {
      const own = chart.marks.filter((mark) => mark[3] === symbol);
      if (!own.length) return [];
      const data = chart.slots.map(() => null);
      for (const [slot, , tone] of own) data[slot] = { value: 1, itemStyle: { color: colour(tone) } };
      return [{
        type: "line", data, yAxisIndex: 1, silent: true, z: 5, lineStyle: { width: 0 }, emphasis: { disabled: true },
        symbol, symbolRotate: symbol === "triangle" ? 180 : 0, symbolSize: symbol === "triangle" ? [11, 8] : 10,
        showSymbol: true, showAllSymbol: true,
      }];
    });
  }

  function durationAxis(chart) {
    const shown = chart.series.filter((one) => !chart.hidden.has(one.name));
    const top = Math.max(0, ...shown.flatMap((one) => one.values.map((value) => value ?? 0)));
    const interval = durationSteps.find((step) => step * 4 >= top);
    return top && interval ? { interval, max: Math.ceil(top / interval) * interval } : {};
  }

  function options(chart) {
    const dim = colour("dim"), line = colour("line"), ink = colour("ink");
    const isHeat = chart.kind === "heat";
    const font = getComputedStyle(document.body).fontFamily;
    return {
      animation: false,
      textStyle: { fontFamily: font, fontSize: 11, color: dim },
      grid: { left: 4, right: 8, top: 10, bottom: 2, outerBoundsMode: "same" },
      xAxis: {
        type: "category", data: chart.slots.map((slot) => slot[0]), boundaryGap: chart.kind !== "lines",
        axisTick: { show: false }, axisLine: { lineStyle: { color: line } },
        axisLabel: { color: dim, fontSize: 11, hideOverlap: true, margin: 8 },
        axisPointer: { lineStyle: { color: dim, type: "solid", width: 1 }, label: { show: false } },
      },
      yAxis: [
        isHeat ? { type: "category", data: chart.series.map((one) => one.label || one.name), axisTick: { show: false },
          axisLine: { show: false }, axisLabel: { color: ink, fontSize: 11, interval: (n) => chart.series[n].label !== "" } }
          : { type: "value", min: 0, splitNumber: 3, axisLabel: { color: dim, fontSize: 11, formatter: axis[chart.unit] },
            splitLine: { lineStyle: { color: line } }, ...(chart.unit === "duration" ? durationAxis(chart) : {}) },
        { type: "value", min: 0, max: 1, show: false },
      ],
      tooltip: {
        trigger: isHeat ? "item" : "axis", confine: true, transitionDuration: 0, className: "chart-tip",
        axisPointer: { type: chart.kind === "bars" ? "shadow" : "line", shadowStyle: { color: colour("dim", 0.1) } },
        formatter: (at) => isHeat ? tip(chart, at.value[0], chart.series[at.value[1]]) : tip(chart, at[0].dataIndex),
        backgroundColor: "transparent", borderWidth: 0, padding: 0, extraCssText: "box-shadow:none",
      },
      series: [...series(chart), ...marks(chart)],
    };
  }

  // A click on a mark opens its calls; a click between marks opens all calls of that part.
  function open(figure, query, event) {
    let address = `${figure.dataset.calls}?${new URLSearchParams({ q: query.trim() })}`;
    if (figure.dataset.traces) {
      const names = { since: "from", until: "to" };
      const terms = query.trim().split(" ").map((term) => term.match(/^(\w+):(.*)$/).slice(1));
      address = `${figure.dataset.traces}?${new URLSearchParams(terms.map(([name, value]) => [names[name] ?? name, value]))}`;
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

  // The line at one part, in all charts of the page that have the same parts.
  function cross(from, n) {
    const times = from.chart.is_time && JSON.stringify(from.chart.slots.map((slot) => slot[2]));
    for (const [place, instance] of drawn) {
      const shared = times && instance.chart.is_time
        && (instance === from || JSON.stringify(instance.chart.slots.map((slot) => slot[2])) === times);
      const line = place.querySelector(".chart-cross");
      line.hidden = n === null || !(shared || instance === from);
      if (!line.hidden) line.style.left = `${placeOf(instance, n)[0]}px`;
    }
  }

  // The parts that are being chosen, or null.
  function mark(place, instance, parts) {
    const box = place.querySelector(".chart-range");
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

  function begin(figure, place) {
    const instance = echarts.init(place, null, { renderer: "canvas" });
    drawn.set(place, instance);
    resized.observe(place);
    for (const name of ["chart-cross", "chart-range"]) {
      const overlay = place.appendChild(document.createElement("div"));
      overlay.className = name;
      overlay.hidden = true;
    }
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
    return instance;
  }

  function draw(figure) {
    // No id: htmx would copy its style attribute to the next chart, which the security policy forbids.
    const place = figure.querySelector(".chart-canvas");
    const island = figure.querySelector('script[type="application/json"]');
    if (!place || !island) return;
    const instance = drawn.get(place) ?? begin(figure, place);
    const chart = { ...JSON.parse(island.textContent), hidden: hiddenIn(figure) };
    instance.chart = chart;
    place.drawn = instance; // for js/chart_files.js
    place.classList.toggle("is-zoomable", canZoom(figure, chart));
    for (const [name, value] of Object.entries({
      role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": chart.slots.length - 1,
    })) place.setAttribute(name, value);
    if (!place.hasAttribute("aria-valuenow")) {
      place.setAttribute("aria-valuenow", chart.slots.length - 1);
      place.setAttribute("aria-valuetext", spoken(chart, chart.slots.length - 1));
    }
    for (const button of figure.querySelectorAll("button[data-series]")) {
      button.setAttribute("aria-pressed", !chart.hidden.has(chart.series[button.dataset.series].name));
    }
    instance.setOption(options(chart), true);
  }

  // A click on a name hides or shows its series; with Shift, Ctrl or ⌘ it is shown alone, or all are again.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("figure.chart button[data-series]");
    if (!button) return;
    const figure = button.closest("figure.chart");
    const { chart } = drawn.get(figure.querySelector(".chart-canvas"));
    const names = chart.series.map((one) => one.name), own = names[button.dataset.series];
    let hidden = chart.hidden;
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      const others = names.filter((name) => name !== own);
      const isAlone = !hidden.has(own) && others.every((name) => hidden.has(name));
      hidden = new Set(isAlone ? [] : others);
    } else if (!hidden.delete(own)) hidden.add(own);
    try {
      sessionStorage.setItem(keyOf(figure), JSON.stringify([...hidden]));
    } catch { /* without storage nothing is kept, and so nothing is hidden */ }
    draw(figure);
  });

  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.isConnected) drawn.get(target)?.resize();
  });

  function drawAll() {
    for (const [place, instance] of drawn) {
      if (place.isConnected) continue;
      resized.unobserve(place);
      instance.dispose();
      drawn.delete(place);
    }
    document.querySelectorAll("figure.chart").forEach(draw);
  }

  document.addEventListener("htmx:after:swap", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  isForced.addEventListener("change", drawAll);

  // htmx polls in hidden tabs, too. Stop that, and refresh when the tab is shown again.
  const polls = () => document.querySelectorAll('[hx-trigger*="every "]');
  document.addEventListener("every", (event) => {
    if (document.hidden) event.stopImmediatePropagation();
  }, true);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) for (const one of polls()) one.dispatchEvent(new Event("every"));
  });

  drawAll(); // the script is deferred, so the page is complete
})();
