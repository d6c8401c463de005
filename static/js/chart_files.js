// Saves a chart as a picture (PNG) or as a table (CSV), from what the page already has. js/charts.js loads it when
// somebody saves one.

const SCALE = 2, EDGE = 14, LINE = 20;

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What a spreadsheet would take for a formula gets an apostrophe, as in the exports of pages.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return `${value}`;
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function table(chart) {
  const units = { duration: " [ms]", share: " [0 to 1]" };
  const of = chart.series.filter((one) => one.role !== "threshold");
  const names = of.map((one) => `${one.name}${units[chart.unit] ?? ""}`);
  const rows = chart.slots.map(([, name, query], n) => {
    const times = chart.is_time ? [query.match(/since:(\S+)/)[1], query.match(/until:(\S+)/)[1]] : [name];
    return [...times, ...of.map((one) => one.values[n])];
  });
  const head = [...(chart.is_time ? ["from", "to"] : [chart.across]), ...names];
  return [head, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

// The drawing, with its title, its note and its legend above.
function picture(figure, place) {
  const { drawn } = place, { chart } = drawn;
  const surface = getComputedStyle(figure).backgroundColor;
  const drawing = drawn.renderToCanvas({ pixelRatio: SCALE, backgroundColor: surface });
  const canvas = document.createElement("canvas");
  const head = 3 * LINE;
  canvas.width = drawing.width + 2 * EDGE * SCALE;
  canvas.height = drawing.height + (head + EDGE) * SCALE;
  const pen = canvas.getContext("2d");
  pen.fillStyle = surface;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawing, EDGE * SCALE, head * SCALE);
  pen.scale(SCALE, SCALE);
  const family = getComputedStyle(document.body).fontFamily;
  const write = (text, x, y, weight, color) => {
    pen.font = `${weight} 13px ${family}`;
    pen.fillStyle = color;
    pen.fillText(text, x, y);
    return x + pen.measureText(text).width;
  };
  const ink = getComputedStyle(figure).color;
  const title = figure.querySelector("figcaption b").textContent;
  const note = figure.querySelector("figcaption .chart-note")?.textContent ?? "";
  write(note, write(title, EDGE, LINE, 600, ink) + 8, LINE, 400, ink);
  let x = EDGE;
  for (const button of figure.querySelectorAll('button[data-series][aria-pressed="true"]')) {
    pen.fillStyle = getComputedStyle(button.querySelector("i")).color;
    pen.fillRect(x, 2 * LINE - 9, 10, 10);
    x = write(chart.series[button.dataset.series].name, x + 15, 2 * LINE, 400, ink) + 16;
  }
  return canvas;
}

export function saveChart(button) {
  const figure = button.closest("figure.chart"), place = figure.querySelector(".chart-canvas");
  const name = `${figure.querySelector("figcaption b").textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  if (button.dataset.save === "csv") {
    // With a byte order mark, so that spreadsheets read it as UTF-8.
    download(`${name}.csv`, new Blob(["\ufeff", table(place.drawn.chart)], { type: "text/csv" }));
  } else {
    picture(figure, place).toBlob((blob) => download(`${name}.png`, blob), "image/png");
  }
  const menu = button.closest("details");
  menu.open = false;
  menu.querySelector("summary").focus();
}
