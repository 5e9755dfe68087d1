"use strict";
// Filters of the table of cases. The page is complete without them.
(() => {
  const form = document.getElementById("filter");
  if (!form) return;
  const groups = [...document.querySelectorAll(".cases tbody")].map((body) => ({
    body,
    rows: [...body.rows].slice(1).map((row) => {
      const text = row.cells[1].textContent;
      const [op, , mode] = text.split("/");
      return { row, op, mode, status: row.cells[0].textContent, text: text.toLowerCase() };
    }),
  }));
  const all = groups.flatMap((group) => group.rows);
  for (const field of ["op", "mode", "status"]) {
    for (const value of new Set(all.map((one) => one[field]))) {
      if (value) form.elements[field].add(new Option(value, value));
    }
  }
  const apply = () => {
    const wanted = Object.fromEntries(["op", "mode", "status", "text"].map((field) => [field, form.elements[field].value]));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const group of groups) {
      let any = false;
      for (const one of group.rows) {
        const fits = ["op", "mode", "status"].every((field) => !wanted[field] || one[field] === wanted[field]) &&
          words.every((word) => one.text.includes(word));
        one.row.hidden = !fits;
        any ||= fits;
        shown += fits ? 1 : 0;
      }
      group.body.hidden = !any;
    }
    form.querySelector("output").textContent = shown === all.length ? "" : `${shown} of ${all.length} cases`;
    document.documentElement.dataset.shown = shown;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  // A link into the table must not end at a hidden row.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.closest(".cases") && target.hidden) {
      form.reset();
      apply();
    }
  });
  form.hidden = false;
  apply();
})();

// What is under the pointer in a map, instead of its caption. The letters are those of the report's error_map.
(() => {
  const number = (value) => Number(value.toPrecision(2));
  const worst = (letter) => {
    const told = { "0": "no error", "#": "NaN or infinity is wrong", "!": "not written", "?": "nothing compared" }[letter];
    const power = letter.charCodeAt(0) - "i".charCodeAt(0);
    return told ?? (letter === "z" ? "over 65536 × the bound" : `up to ${power < 0 ? number(2 ** power) : 2 ** power} × the bound`);
  };
  const mean = (letter, unit) =>
    letter === "?" ? "nothing compared" : `mean error about ${number((letter.charCodeAt(0) - "m".charCodeAt(0)) / 12 * unit)}`;
  for (const map of document.querySelectorAll("svg.map")) {
    const caption = map.closest("figure").querySelector("figcaption span"), before = caption.textContent;
    const letters = map.dataset.letters.split(" "), unit = Number(map.dataset.unit);
    const [rows, cols, cell_rows, cell_cols] = map.dataset.extents.split(" ").map(Number);
    const range = (cell, extent, size) => `${cell * extent}–${Math.min((cell + 1) * extent, size) - 1}`;
    map.addEventListener("mousemove", (event) => {
      const box = map.querySelector(".frame").getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top) / box.height * letters.length);
      const column = Math.floor((event.clientX - box.left) / box.width * letters[0].length);
      const letter = letters[row]?.[column];
      caption.textContent = letter === undefined ? before : `rows ${range(row, cell_rows, rows)}, columns ` +
        `${range(column, cell_cols, cols)}: ${unit ? mean(letter, unit) : worst(letter)}`;
    });
    map.addEventListener("mouseleave", () => { caption.textContent = before; });
  }
})();

// Charts, if Chart.js is part of the page. The numbers stay below each chart, folded.
(() => {
  const data = document.getElementById("chart-data");
  if (!data || !window.Chart) return;
  const colours = ["#3b6fb0", "#e07b39", "#2f9e6e", "#c2466b", "#8a63c9", "#b0892b", "#3aa5b8", "#7a7f87", "#a3552f", "#5f8f2f",
    "#d477b5", "#566fd1"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const axis = (title, more) => ({
    title: { display: true, text: title, color: colour("soft") },
    grid: { color: colour("line") }, border: { color: colour("line") }, ticks: { color: colour("soft") }, ...more,
  });
  const power = (value) => {
    const exponent = Math.log10(value);
    return Number.isInteger(exponent) ? (Math.abs(exponent) < 4 ? String(value) : "1e" + exponent) : "";
  };
  // Powers of two, at most ten of them.
  const powers = (min, max) => {
    const first = Math.ceil(Math.log2(min)), last = Math.floor(Math.log2(max)), step = Math.ceil((last - first + 1) / 10) || 1;
    const ticks = [];
    for (let exponent = first; exponent <= last; exponent += step) ticks.push({ value: 2 ** exponent });
    return ticks;
  };
  const curves = (chart) => {
    const points = chart.series.flatMap((one) => one.points.map((point) => point[0]));
    const limit = { label: "limit", data: [Math.min(...points), Math.max(...points)].map((x) => ({ x, y: chart.limit })),
      borderColor: colour("fail"), borderDash: [6, 4], pointRadius: 0, borderWidth: 1.5 };
    const lengths = [...new Set(points)];
    return {
      type: "scatter",
      data: { datasets: chart.series.map((one, i) => ({ label: one.name, showLine: true, borderWidth: 2, pointRadius: 3,
        borderColor: colours[i % colours.length], backgroundColor: colours[i % colours.length],
        data: one.points.map(([x, y]) => ({ x, y })) })).concat(lengths.length ? [limit] : []) },
      options: { scales: {
        x: axis(chart.x, { type: "logarithmic", afterBuildTicks: (scale) => { scale.ticks = powers(scale.min, scale.max); },
          ticks: { color: colour("soft"), maxRotation: 0, callback: String } }),
        y: axis(chart.y, { type: "logarithmic", suggestedMax: 2, ticks: { color: colour("soft"), callback: power } }) } },
    };
  };
  const shares = (chart) => ({
    type: "line",
    data: { labels: chart.bins, datasets: chart.series.map((one, i) => {
      const own = one.reference ? colour("ink") : colours[i % colours.length];
      return { label: one.name, data: one.shares.map((share) => 100 * share), borderColor: own, backgroundColor: own,
        borderDash: one.reference ? [6, 4] : [], borderWidth: 2, pointRadius: one.reference ? 0 : 3, cubicInterpolationMode: "monotone" };
    }) },
    options: { scales: { x: axis("", { grid: { display: false } }), y: axis(chart.y + " [%]", { min: 0 }) } },
  });
  const is_blank = (canvas) => !canvas.width || !canvas.height ||
    !new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer).some(Boolean);
  let drawn = [];
  const draw = () => {
    drawn.forEach((chart) => chart.destroy());
    drawn = [];
    let count = 0;
    for (const chart of JSON.parse(data.textContent)) {
      const figure = document.getElementById(chart.id);
      figure.classList.add("drawn");
      const configuration = (chart.kind === "curves" ? curves : shares)(chart);
      Object.assign(configuration.options, { animation: false, responsive: true, maintainAspectRatio: false,
        plugins: { legend: { position: "bottom", labels: { color: colour("ink"), boxWidth: 14, boxHeight: 2 } } } });
      const canvas = figure.querySelector("canvas");
      drawn.push(new Chart(canvas, configuration));
      count += is_blank(canvas) ? 0 : 1;
    }
    document.documentElement.dataset.charts = count;
  };
  draw();
  document.querySelectorAll("details.numbers").forEach((details) => { details.open = false; });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("beforeprint", () => drawn.forEach((chart) => chart.resize()));
})();
