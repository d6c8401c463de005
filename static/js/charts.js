// Draws the charts of a page from their JSON islands (audit/show/charts.py). While the tab is hidden,
// the page does not refresh. Without this script the tables with the charts' figures are open instead.
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
        : ms < 60000 ? `${+(ms / 1000).toPrecision(3)} s` : `${+(ms / 60000).toPrecision(3)} min`,
  };

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

  function series(chart) {
    const last = chart.series.length - 1;
    if (chart.kind === "heat") {
      const top = Math.max(...chart.series.flatMap((one) => one.values.map((value) => value ?? 0)));
      const { tone } = chart.series[0];
      return [{
        type: "heatmap",
        data: chart.series.flatMap((one, y) => one.values.flatMap((value, x) => value ? [{
          value: [x, y, value],
          itemStyle: { color: colour(tone, (0.12 + 0.88 * Math.sqrt(value / top)).toFixed(2)) },
        }] : [])),
        itemStyle: { borderWidth: 1, borderColor: colour("surface") },
        emphasis: { disabled: true },
      }];
    }
    const isPartial = (n) => chart.partial.includes(n);
    return chart.series.flatMap((one, n) => {
      const color = colour(one.tone);
      if (chart.kind === "bars") {
        const dimmed = { color: colour(one.tone, 0.4) };
        return {
          type: "bar", name: one.name, stack: "all", color,
          data: one.values.map((value, at) => isPartial(at) ? { value, itemStyle: dimmed } : value),
          barCategoryGap: "18%", barMaxWidth: 34, barMinWidth: 1,
          itemStyle: { borderRadius: n === last ? [2, 2, 0, 0] : 0 },
          emphasis: { itemStyle: { color: colour(one.tone, 0.75) } },
        };
      }
      const line = {
        type: "line", name: one.name, data: one.values, color, connectNulls: false,
        symbol: "circle", symbolSize: 5, showSymbol: one.values.length < 3,
        showAllSymbol: false, lineStyle: { width: n ? 1.5 : 2, type: dashes[n % 3] },
        areaStyle: chart.series.length === 1 ? { color: colour(one.tone, 0.14) } : undefined,
        emphasis: { disabled: true },
      };
      if (!chart.partial.length) return line;
      // To and from a step that the range contains only in part, the line is thin, dim and not clickable.
      const near = (at) => isPartial(at - 1) || isPartial(at) || isPartial(at + 1);
      return [
        { ...line, data: one.values.map((value, at) => isPartial(at) ? null : value) },
        {
          ...line, data: one.values.map((value, at) => near(at) ? value : null), silent: true,
          color: colour(one.tone, 0.45), areaStyle: undefined, lineStyle: { width: 1, type: [2, 3] },
        },
      ];
    });
  }

  // Where alerts fired: triangles along the top, on an axis of their own. Not clickable: the calls below are.
  function marks(chart) {
    if (!chart.marks.length) return [];
    const data = chart.slots.map(() => null);
    for (const [slot, , tone] of chart.marks) data[slot] = { value: 1, itemStyle: { color: colour(tone) } };
    return [{
      type: "line", data, yAxisIndex: 1, silent: true, z: 5, lineStyle: { width: 0 }, emphasis: { disabled: true },
      symbol: "triangle", symbolRotate: 180, symbolSize: [11, 8], showSymbol: true, showAllSymbol: true,
    }];
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
        isHeat ? { type: "category", data: chart.series.map((one) => one.name), axisTick: { show: false },
          axisLine: { show: false }, axisLabel: { color: ink, fontSize: 11, width: 150, overflow: "truncate" } }
          : { type: "value", min: 0, splitNumber: 3, axisLabel: { color: dim, fontSize: 11, formatter: axis[chart.unit] },
            splitLine: { lineStyle: { color: line } } },
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
    const address = `${figure.dataset.calls}?${new URLSearchParams({ q: query.trim() })}`;
    if (event?.ctrlKey || event?.metaKey) window.open(address, "_blank", "noopener");
    else location.assign(address);
  }

  function draw(figure) {
    // No id: htmx would copy its style attribute to the next chart, which the security policy forbids.
    const place = figure.querySelector(".chart-canvas");
    const island = figure.querySelector('script[type="application/json"]');
    if (!place || !island) return;
    const chart = JSON.parse(island.textContent);
    let instance = drawn.get(place);
    if (!instance) {
      instance = echarts.init(place, null, { renderer: "canvas" });
      drawn.set(place, instance);
      resized.observe(place);
      const zr = instance.getZr();
      const slotAt = (event) => {
        const at = [event.offsetX, event.offsetY];
        if (!instance.containPixel("grid", at)) return null;
        return instance.chart.slots[instance.convertFromPixel({ xAxisIndex: 0 }, event.offsetX)];
      };
      instance.on("click", ({ dataIndex, seriesIndex, value, event }) => {
        const { slots, series: all, kind } = instance.chart;
        const ofLines = kind === "lines" && instance.chart.partial.length ? seriesIndex / 2 : seriesIndex;
        const [slot, one] = kind === "heat" ? [slots[value[0]], all[value[1]]] : [slots[dataIndex], all[ofLines]];
        open(figure, `${slot[2]} ${one.query}`, event?.event);
      });
      zr.on("click", (event) => {
        const slot = event.target ? null : slotAt(event);
        if (slot && instance.chart.kind !== "heat") open(figure, slot[2], event.event);
      });
      zr.on("mousemove", (event) => {
        if (!event.target) zr.setCursorStyle(slotAt(event) && instance.chart.kind !== "heat" ? "pointer" : "default");
      });
    }
    instance.chart = chart;
    instance.setOption(options(chart), true);
  }

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
