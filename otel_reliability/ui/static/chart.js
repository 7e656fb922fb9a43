// The score over time, with tiers as lines and changes as marks. Without this script a plain curve stands in its place.
"use strict";

window.reliabilityCharts = (() => {
  const TIERS = [[80, "stable"], [60, "variable"], [40, "unstable"]];
  const MARGIN = 4;
  const LEAST_RANGE = 30;
  const drawn = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
  const moment = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;

  /** As much of a time as tells the places of an axis apart. */
  function times(seconds) {
    const step = seconds.length > 1 ? seconds[1] - seconds[0] : 60;
    const [from, to] = step >= 43_200 ? [5, 10] : step >= 60 ? [11, 16] : [11, 19];
    return seconds.map((one) => new Date(one * 1000).toISOString().slice(from, to).replace("T", " "));
  }

  function range(scores) {
    const low = Math.min(...scores), high = Math.max(...scores);
    const middle = (low + high) / 2, half = Math.max(high - low + 2 * MARGIN, LEAST_RANGE) / 2;
    const top = Math.min(100, Math.max(middle + half, 2 * half));
    return [Math.max(0, top - 2 * half), top];
  }

  function tierLines(u) {
    const { ctx, bbox } = u, dpr = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * dpr}px sans-serif`;
    for (const [score, tier] of TIERS) {
      const y = Math.round(u.valToPos(score, "y", true));
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(`${tier}-fill`);
      ctx.globalAlpha = 0.55;
      ctx.lineWidth = dpr;
      ctx.setLineDash([3 * dpr, 3 * dpr]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour(tier);
      ctx.textAlign = "right";
      ctx.fillText(`${tier} from ${score}`, bbox.left + bbox.width, y - 4 * dpr);
    }
    ctx.restore();
  }

  function changeMarks(u, marks) {
    const { ctx, bbox } = u, dpr = devicePixelRatio;
    ctx.save();
    ctx.font = `600 ${11 * dpr}px sans-serif`;
    ctx.strokeStyle = ctx.fillStyle = colour("ink");
    ctx.lineWidth = 1.5 * dpr;
    for (const [second] of marks) {
      const x = Math.round(u.valToPos(second, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const left = x > bbox.left + bbox.width / 2;
      ctx.textAlign = left ? "right" : "left";
      ctx.fillText("change", x + (left ? -5 : 5) * dpr, bbox.top + 11 * dpr);
    }
    ctx.restore();
  }

  function readout(element, u, initial) {
    const told = element.parentElement.querySelector("[data-readout]");
    if (!told) return;
    const at = u.cursor.idx;
    told.textContent = at == null || u.cursor.left < 0 ? initial : `${moment(u.data[0][at])}: ${u.data[1][at].toFixed(1)} of 100`;
  }

  function options(element, marks, width) {
    const grid = { stroke: colour("line"), width: 1 }, axis = { stroke: colour("quiet"), font: font(), ticks: { show: false } };
    const told = element.parentElement.querySelector("[data-readout]");
    const initial = told ? told.textContent : "";
    return {
      width,
      height: element.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      scales: { x: { time: true }, y: { range: (u, low, high) => range([low ?? 0, high ?? 100]) } },
      axes: [
        { ...axis, grid: { show: false }, size: 28, space: 90, values: (u, seconds) => times(seconds) },
        { ...axis, grid, size: 34, space: 40 },
      ],
      series: [{}, {
        stroke: colour("accent"), width: 2, fill: `${colour("accent")}1f`, points: { show: false },
        paths: uPlot.paths.linear(),
      }],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      hooks: { drawAxes: [tierLines], draw: [(u) => changeMarks(u, marks)], setCursor: [(u) => readout(element, u, initial)] },
    };
  }

  function draw(element) {
    const width = element.clientWidth;
    if (!width || typeof uPlot === "undefined") return;
    const { points, marks } = JSON.parse(element.dataset.chart);
    const known = drawn.get(element);
    if (known) known.destroy();
    element.replaceChildren();
    const data = [points.map((one) => one[0]), points.map((one) => one[1])];
    drawn.set(element, new uPlot(options(element, marks, width), data, element));
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const known = drawn.get(target);
      if (!known) draw(target);
      else if (target.clientWidth && known.width !== target.clientWidth) known.setSize({ width: target.clientWidth, height: target.clientHeight });
    }
  });

  /** Draw what is new, and forget what is gone. */
  function refresh() {
    for (const [element, known] of drawn) {
      if (element.isConnected) continue;
      known.destroy();
      drawn.delete(element);
      sizes.unobserve(element);
    }
    for (const element of document.querySelectorAll("[data-chart]")) {
      if (!drawn.has(element)) sizes.observe(element);
    }
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...drawn.keys()].forEach(draw));
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", refresh) : refresh();
  return { refresh, draw };
})();
