// Draws the charts of a page from their JSON islands (audit/show/charts.py), and hides and shows their series.
// While the tab is hidden, the page does not refresh. Without this script the tables with the charts' figures are
// open instead. What a reader does with a chart: js/chart_moves.js, which comes before; its files: js/chart_files.js.
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
    const slotsOf = (symbol) => new Set(chart.marks.filter((mark) => mark[3] === symbol).map(([slot]) => slot));
    const [triangles, diamonds] = ["triangle", "diamond"].map(slotsOf);
    return ["triangle", "diamond"].flatMap((symbol) => {
      const own = chart.marks.filter((mark) => mark[3] === symbol);
      if (!own.length) return [];
      const data = chart.slots.map(() => null), aside = symbol === "triangle" ? -7 : 7;
      for (const [slot, , tone] of own) {
        const isShared = triangles.has(slot) && diamonds.has(slot); // side by side
        data[slot] = { value: 1, itemStyle: { color: colour(tone) }, symbolOffset: [isShared ? aside : 0, 0] };
      }
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
            splitLine: { lineStyle: { color: line } }, ...(chart.unit === "duration" ? durationAxis(chart) : {}),
            ...(chart.unit === "share" ? { max: ({ max }) => (max > 0.75 ? 1 : null) } : {}) },
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

  function begin(place) {
    const instance = echarts.init(place, null, { renderer: "canvas" });
    drawn.set(place, instance);
    place.drawn = instance; // for js/chart_moves.js and js/chart_files.js
    resized.observe(place);
    return instance;
  }

  function draw(figure) {
    // No id: htmx would copy its style attribute to the next chart, which the security policy forbids.
    const place = figure.querySelector(".chart-canvas");
    const island = figure.querySelector('script[type="application/json"]');
    if (!place || !island) return;
    const isNew = !drawn.has(place);
    const instance = drawn.get(place) ?? begin(place);
    const chart = { ...JSON.parse(island.textContent), hidden: hiddenIn(figure) };
    instance.chart = chart;
    for (const button of figure.querySelectorAll("button[data-series]")) {
      button.setAttribute("aria-pressed", !chart.hidden.has(chart.series[button.dataset.series].name));
    }
    instance.setOption(options(chart), true);
    place.dispatchEvent(new CustomEvent(isNew ? "chart:made" : "chart:drawn", { bubbles: true, detail: instance }));
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

  // What saves a chart is loaded when somebody wants to.
  const { files } = document.currentScript.dataset;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("figure.chart button[data-save]");
    if (button) (await import(files)).saveChart(button);
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
